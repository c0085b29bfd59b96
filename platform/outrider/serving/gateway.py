"""The gateway as a Serve application: the API of `api` in front of releases that run.

On one machine it listens itself; in a cluster Serve's proxies listen, on every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ray import serve
from ray.exceptions import RayError

from outrider.config.schema import ServingSettings
from outrider.serving.api import Service, create_api
from outrider.serving.fleet import Fleet, open_fleet
from outrider.serving.guard import Transition
from outrider.serving.kept import Card
from outrider.serving.listener import Listener
from outrider.serving.ray_kept import RayKept
from outrider.serving.serve_deployer import ServeDeployer

GATEWAY = "gateway"
# Beside Serve's own controller: nodes with engines may go, and no call goes with them.
HEAD = "node:__internal_head__"
REQUEST_ID = b"x-request-id"
MOST_CALLS = 4096  # under way in one gateway; replicas refuse far earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The release that a service begins with, and how others are started beside it."""

    card: Card
    created: int  # seconds since 1970: a service that is begun anew forgets what the last one kept
    build: str  # `ServeDeployer`'s


def gateway_application(
    make_service: Any, settings: ServingSettings, first: First, *, listens: bool
) -> Any:
    """`make_service(fleet) -> Service` is called inside the gateway. Picklable.

    `listens`: at `settings.host` and `port`, itself; else it has Serve's proxies before it.
    """
    if listens:
        return _deployment(settings)(ListeningGateway).bind(make_service, settings, first)

    def build() -> Any:
        service = make_service(_fleet(settings, first))
        return Calm(create_api(service), service)

    return _deployment(settings)(serve.ingress(build)(ProxiedGateway)).bind()


def _deployment(settings: ServingSettings) -> Any:
    return serve.deployment(
        name=GATEWAY,
        num_replicas=1,
        ray_actor_options={"num_cpus": 0, "resources": {HEAD: 0.001}},
        max_ongoing_requests=MOST_CALLS + 16,
        graceful_shutdown_timeout_s=settings.deadline_s,
        graceful_shutdown_wait_loop_s=0.5,
    )


def _fleet(settings: ServingSettings, first: First) -> Fleet:
    return open_fleet(
        settings.name,
        first.card,
        owner=f"{settings.name} {first.card.fingerprint} {first.created}",
        deployer=ServeDeployer(first.build, settings.deadline_s),
        kept=RayKept(),
        most_calls=MOST_CALLS,
        deadline_s=settings.deadline_s,
    )


class ListeningGateway:
    """Clients reach it without Serve; Serve keeps it alive."""

    def __init__(self, make_service: Any, settings: ServingSettings, first: First) -> None:
        self._service: Service = make_service(_fleet(settings, first))
        self._listener = Listener(create_api(self._service), settings)

    async def leave(self) -> int:
        """New calls get a 503 from now on. How many are under way."""
        return self._service.desk.leave()

    async def transitions(self, after_s: float) -> list[Transition]:
        """Of the guards of all releases, after a time (seconds since 1970)."""
        return self._service.watch.transitions(after_s)

    async def check_health(self) -> None:
        self._listener.check()

    async def __del__(self) -> None:
        """Serve awaits it, before it ends the process."""
        await self._listener.close()


class ProxiedGateway:
    """Serve calls the ASGI app, which `serve.ingress` makes `self.app`."""

    app: Calm

    async def leave(self) -> int:
        """New calls get a 503 from now on. How many are under way."""
        return self.app.service.desk.leave()

    async def transitions(self, after_s: float) -> list[Transition]:
        """Of the guards of all releases, after a time (seconds since 1970)."""
        return self.app.service.watch.transitions(after_s)


class Calm:
    """The app as Serve likes it: `receive` says "disconnected" where Serve's raises for the same
    reason, and the request id, which Serve's proxy writes too, is written once.
    """

    def __init__(self, app: Any, service: Service) -> None:
        self._app = app
        self.service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def receive_calmly() -> Any:
            try:
                return await receive()
            except RayError:
                return {"type": "http.disconnect"}

        async def send_once(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [pair for pair in message["headers"] if pair[0] != REQUEST_ID]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive_calmly, send_once)
