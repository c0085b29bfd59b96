"""Applications on Serve: started, awaited, asked, taken away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from ray import serve
from ray.exceptions import RayError
from ray.serve.config import ProxyLocation
from ray.serve.context import _get_global_client
from ray.serve.exceptions import RayServeException
from ray.serve.schema import ApplicationStatus

from outrider.cluster.cores import is_given
from outrider.config.schema import ServingSettings
from outrider.core import Fault, UserError
from outrider.serving.applications import QUIET, messages_of
from outrider.serving.gateway import GATEWAY
from outrider.serving.guard import Transition
from outrider.serving.kept import forget_all, keep_run, kept_plan, kept_releases
from outrider.serving.messages import ReplicaStats
from outrider.serving.ray_kept import RayKept
from outrider.serving.ready import reason_in
from outrider.serving.release import application_name, open_release

LOOK_S = 0.25
STATS_WAIT_S = 10.0
ANSWER_WAIT_S = 60.0  # from applications that run to an answer over HTTP
CLOSE_WAIT_S = 30.0  # beyond the deadline of the requests
SLOW = "to initialize"  # Serve's word of alarm for a model that takes more than 30 s
LOADING = "still loading the model ..."


def start_serve(settings: ServingSettings, log: Path) -> None:
    """Serve; on a cluster with its proxies. UserError where these listen elsewhere already."""
    _log_into(log)
    where = {"host": settings.host, "port": settings.port}
    location = ProxyLocation.EveryNode if is_given() else ProxyLocation.Disabled
    try:
        serve.start(proxy_location=location, http_options=where, logging_config=QUIET)
    except (RayServeException, RayError, RuntimeError, TimeoutError) as error:
        raise Fault(f"Serve does not start: {str(error).splitlines()[0]}") from error
    there = _get_global_client().http_config
    if is_given() and (there.host, there.port) != (settings.host, settings.port):
        raise UserError(
            f"serving.port: Serve on this cluster listens on {there.host} port {there.port} "
            "already; give serving.host and serving.port so"
        )


def deploy(
    settings: ServingSettings, release: Any, gateway: Any, tell: Callable[[str], None]
) -> None:
    """Run both applications and wait until they do. Raises what a replica died of.

    What another server left behind on this cluster goes: its rollouts were its own.
    """
    for name in release_names(settings.name)[1:]:
        serve.delete(application_name(name), _blocking=False)
    forget_all(RayKept())
    names = [application_name(settings.name), GATEWAY]
    targets = [
        serve.RunTarget(target=app, name=name, route_prefix=route, logging_config=QUIET)
        for app, name, route in zip((release, gateway), names, (None, "/"), strict=True)
    ]
    serve.run_many(
        targets,
        wait_for_ingress_deployment_creation=False,
        wait_for_applications_running=False,
    )
    told: set[str] = set()
    while not all(_is_running(name) for name in names):
        for line in _troubles(names):
            if line not in told:
                told.add(line)
                tell(line)
        time.sleep(LOOK_S)


def wait_for_answer(url: str) -> None:
    """Until the gateway says over HTTP that it is ready."""
    until = time.monotonic() + ANSWER_WAIT_S
    while not _answers(f"{url}/readyz"):
        if time.monotonic() > until:
            raise Fault(f"no answer at {url} within {ANSWER_WAIT_S:g} s")
        time.sleep(LOOK_S)


def keep_run_id(run_id: str) -> None:
    """For the gateway, which shows where the run is. A link is worth no server."""
    with suppress(Fault):
        keep_run(RayKept(), run_id)


def release_names(first: str) -> list[str]:
    """Of all that may run: `first`, which the service began with, then those of rollouts."""
    try:
        kept = kept_releases(RayKept())
    except Fault:  # nobody can say: those that there were at the beginning
        return [first]
    return [first, *(name for name in kept if name != first)]


def stable_name(first: str) -> str:
    """The release that serves now; `first` until a rollout put another one in its place."""
    try:
        plan = kept_plan(RayKept())
    except Fault:
        return first
    return first if plan is None else plan.stable


def ask_stats(releases: Iterable[str]) -> list[ReplicaStats]:
    """What the replicas tell of themselves; nothing of a release of which none answers in time."""

    async def ask(release: str) -> list[ReplicaStats]:
        try:
            return await asyncio.wait_for(open_release(release).stats(), STATS_WAIT_S)
        except (TimeoutError, RayError, RayServeException):
            return []

    async def ask_all() -> list[ReplicaStats]:
        return [each for some in await asyncio.gather(*map(ask, releases)) for each in some]

    return asyncio.run(ask_all())


def ask_transitions(after_s: float) -> list[Transition]:
    """Of the guards, after a time (seconds since 1970); empty where the gateway does not answer."""
    try:
        gateway = serve.get_deployment_handle(GATEWAY, GATEWAY)
        told = gateway.broadcast("transitions", after_s).results(timeout_s=STATS_WAIT_S)
    except (TimeoutError, RayError, RayServeException):
        return []
    return [each for some in told for each in some]


def end_calls(deadline_s: float) -> None:
    """New calls get a 503; return when those in flight have ended, or should have."""
    until = time.monotonic() + deadline_s + CLOSE_WAIT_S
    while _num_left() and time.monotonic() < until:
        time.sleep(LOOK_S)


def take_away(first: str) -> None:
    """The gateway goes, then every release; what still runs there has Serve's own time to end."""
    for name in (GATEWAY, *map(application_name, release_names(first))):
        serve.delete(name, _blocking=False)
        until = time.monotonic() + CLOSE_WAIT_S
        while name in serve.status().applications and time.monotonic() < until:
            time.sleep(LOOK_S)
    forget_all(RayKept())


def _num_left() -> int:
    """Calls under way in the gateway, which takes no new ones from now on."""
    try:
        gateway = serve.get_deployment_handle(GATEWAY, GATEWAY)
        return sum(gateway.broadcast("leave").results(timeout_s=STATS_WAIT_S))
    except (TimeoutError, RayError, RayServeException):  # it is gone already
        return 0


def _is_running(name: str) -> bool:
    application = serve.status().applications.get(name)
    if application is None:
        return False
    if application.status is ApplicationStatus.DEPLOY_FAILED:
        raise reason_in("\n".join([application.message, *messages_of(application)]))
    return bool(application.status is ApplicationStatus.RUNNING)


def _troubles(names: list[str]) -> Iterator[str]:
    """What Serve waits for, where it is not just the model that loads. Raises a UserError that a
    replica ended with: trying again does not help.
    """
    for name, application in serve.status().applications.items():
        for message in messages_of(application) if name in names else ():
            first = message.strip().splitlines()[0]
            if not first.endswith("Error:"):
                yield LOADING if SLOW in first else first
                continue
            reason = reason_in(message)
            if isinstance(reason, UserError):
                raise reason
            yield f"{first.removesuffix(' Error:')} {reason}"


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


def _log_into(log: Path) -> None:
    """What Serve tells its driver goes where Ray's own words go."""
    logger = logging.getLogger("ray.serve")
    logger.handlers = [logging.FileHandler(log)]
    logger.propagate = False
