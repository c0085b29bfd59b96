"""A release as an application of its own on Serve, started from the gateway."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException
from ray.serve.schema import ApplicationStatus

from outrider.core import Fault, UserError
from outrider.serving.applications import QUIET, messages_of, running_applications
from outrider.serving.health import Condition, Health
from outrider.serving.messages import Release
from outrider.serving.ready import reason_in
from outrider.serving.release import application_name, open_release

HEALTH = {
    ApplicationStatus.RUNNING: Health.READY,
    ApplicationStatus.UNHEALTHY: Health.READY,  # some replicas are being replaced
    ApplicationStatus.DEPLOY_FAILED: Health.FAILED,
}


class ServeDeployer:
    """Lives in the gateway, on its asyncio loop. Serve itself remembers what was started."""

    def __init__(self, build: str, deadline_s: float) -> None:
        """`build`: module:function of (settings, name, cpus) -> a Serve application.

        It is named, not given: it brings the engine's libraries, which the gateway does not load.
        """
        self._build = build
        self._deadline_s = deadline_s
        self._starting: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str, settings: Mapping[str, Any], cpus: int) -> None:
        begun = self._starting.get(name)
        if begun is not None and not begun.done():
            return
        there = await asyncio.to_thread(running_applications)
        application = there.get(application_name(name))
        if application is not None and application.status is not ApplicationStatus.DELETING:
            return
        starting = self._start(name, settings, cpus)
        self._starting[name] = asyncio.get_running_loop().create_task(starting)

    async def conditions(self, names: Collection[str]) -> dict[str, Condition]:
        there = await asyncio.to_thread(running_applications)
        told = {name: self._condition(name, there.get(application_name(name))) for name in names}
        return {name: condition for name, condition in told.items() if condition is not None}

    async def stop(self, name: str) -> None:
        begun = self._starting.pop(name, None)
        if begun is not None and not begun.done():
            await asyncio.wait([begun])  # else it would come behind its end
        await asyncio.to_thread(serve.delete, application_name(name), _blocking=False)

    def open(self, name: str) -> Release:
        return open_release(name, deadline_s=self._deadline_s)

    async def _start(self, name: str, settings: Mapping[str, Any], cpus: int) -> None:
        """Raises UserError or Fault, with what is wrong."""
        task = ray.remote(num_cpus=0, max_retries=0)(_run)
        try:
            await task.remote(self._build, name, dict(settings), cpus)
        except RayTaskError as error:
            cause = error.cause
            raise (
                cause if isinstance(cause, UserError | Fault) else reason_in(str(error))
            ) from error
        except RayError as error:
            raise Fault(f"{name} could not be started: {type(error).__name__}") from error

    def _condition(self, name: str, application: Any) -> Condition | None:
        begun = self._starting.get(name)
        if application is None:
            return None if begun is None else _beginning(begun)
        health = HEALTH.get(application.status, Health.STARTING)
        said = "\n".join(messages_of(application))
        reason = reason_in(f"{application.message}\n{said}")
        if health is Health.STARTING and isinstance(reason, UserError):
            health = Health.FAILED  # trying again does not help
        return Condition(health, str(reason) if health is Health.FAILED else "")


def _beginning(begun: asyncio.Task[None]) -> Condition | None:
    """Of a release that Serve knows nothing of; None where it knew once."""
    if not begun.done():
        return Condition(Health.STARTING)
    failure = begun.exception()
    return None if failure is None else Condition(Health.FAILED, str(failure))


def _run(build: str, name: str, settings: Mapping[str, Any], cpus: int) -> None:
    """In a process of its own, which goes when it is done."""
    target = serve.RunTarget(
        target=_imported(build)(settings, name, cpus),
        name=application_name(name),
        route_prefix=None,
        logging_config=QUIET,
    )
    try:
        serve.run_many(
            [target],
            wait_for_ingress_deployment_creation=False,
            wait_for_applications_running=False,
        )
    except (RayServeException, RuntimeError, TimeoutError) as error:
        raise Fault(f"Serve does not take {name}: {str(error).splitlines()[0]}") from error


def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
