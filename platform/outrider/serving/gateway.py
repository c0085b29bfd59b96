"""The gateway as a Serve application: the API of `api` in front of releases that run.

On one machine it listens itself; in a cluster Serve's proxies listen, on every node.
"""

from __future__ import annotations

from typing import Any

from ray import serve
from ray.exceptions import RayError

from outrider.config.schema import ServingSettings
from outrider.serving.api import Service, create_api
from outrider.serving.desk import Desk
from outrider.serving.listener import Listener
from outrider.serving.release import open_release
from outrider.serving.split import Plan

GATEWAY = "gateway"
# Beside Serve's own controller: nodes with engines may go, and no call goes with them.
HEAD = "node:__internal_head__"
REQUEST_ID = b"x-request-id"
MOST_CALLS = 4096  # under way in one gateway; replicas refuse far earlier


def gateway_application(make_service: Any, settings: ServingSettings, *, listens: bool) -> Any:
    """`make_service(desk) -> Service` is called inside the gateway. Picklable.

    `listens`: at `settings.host` and `port`, itself; else it has Serve's proxies before it.
    """
    if listens:
        return _deployment(settings)(ListeningGateway).bind(make_service, settings)

    def build() -> Any:
        desk = _desk(settings)
        return Calm(create_api(make_service(desk)), desk)

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


def _desk(settings: ServingSettings) -> Desk:
    name = settings.name
    releases = {name: open_release(name, deadline_s=settings.deadline_s)}
    return Desk(releases, Plan(stable=name), most_calls=MOST_CALLS, deadline_s=settings.deadline_s)


class ListeningGateway:
    """Clients reach it without Serve; Serve keeps it alive."""

    def __init__(self, make_service: Any, settings: ServingSettings) -> None:
        self._desk = _desk(settings)
        service: Service = make_service(self._desk)
        self._listener = Listener(create_api(service), settings)

    async def leave(self) -> int:
        """New calls get a 503 from now on. How many are under way."""
        return self._desk.leave()

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
        return self.app.desk.leave()


class Calm:
    """The app as Serve likes it: `receive` says "disconnected" where Serve's raises for the same
    reason, and the request id, which Serve's proxy writes too, is written once.
    """

    def __init__(self, app: Any, desk: Desk) -> None:
        self._app = app
        self.desk = desk

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
