"""A release's replicas behind a Serve handle: what `messages.Release` asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from ray import serve
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
)

from outrider.config.schema import ServingSettings
from outrider.core import Fault
from outrider.openai.call import Call
from outrider.serving.kept import keep_control
from outrider.serving.messages import (
    BusyError,
    Control,
    Events,
    Pulse,
    Refusal,
    ReplicaLostError,
    ReplicaStats,
)
from outrider.serving.ray_kept import RayKept
from outrider.serving.refusals import too_late

DEPLOYMENT = "Replica"
LATE_S = 5.0  # beyond the deadline of a call
ANSWER_WAIT_S = 8.0  # of every replica, to what is asked of all
PULSE_WAIT_S = 2.0  # the same, for what takes a replica no time
LOST = (
    RayActorError,
    NodeDiedError,
    ObjectLostError,
    WorkerCrashedError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
)


def application_name(release: str) -> str:
    return f"release-{release}"


class ServeRelease:
    """Calls go to one replica each; what is lost or refused is told as messages' errors."""

    def __init__(self, name: str, handle: Any, deadline_s: float) -> None:
        self._name = name
        self._handle = handle
        self._streaming = handle.options(stream=True, method_name="stream")
        self._wait_s = deadline_s + LATE_S

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        until = asyncio.get_running_loop().time() + self._wait_s
        with _told():
            response = self._streaming.remote(call)
        try:
            with _told():
                while True:
                    async with asyncio.timeout_at(until):
                        events = await anext(response, None)
                    if events is None:
                        return
                    yield events
        except TimeoutError:
            yield (self._too_late(),)
        finally:
            response.cancel()  # nothing happens where it has ended

    async def complete(self, call: Call) -> Events:
        with _told():
            response = self._handle.complete.remote(call)
            try:
                async with asyncio.timeout(self._wait_s):
                    events: Events = await response
                return events
            except TimeoutError:
                return (self._too_late(),)
            finally:
                response.cancel()

    async def control(self, control: Control) -> None:
        """Raises `Fault` where a replica that runs does not answer in time."""
        # First it is kept: a replica that starts now reads it.
        await asyncio.to_thread(keep_control, RayKept(), self._name, control)
        try:
            await self._ask_all("control", control)
        except TimeoutError as error:
            raise Fault(f"a replica of {self._name} did not answer; send it again") from error

    async def stats(self) -> list[ReplicaStats]:
        told = await self._ask_all("stats")
        return [each for each in told if isinstance(each, ReplicaStats)]

    async def pulses(self) -> list[Pulse]:
        told = await self._ask_all("pulse", wait_s=PULSE_WAIT_S)
        return [each for each in told if isinstance(each, Pulse)]

    async def _ask_all(
        self, method: str, *arguments: Any, wait_s: float = ANSWER_WAIT_S
    ) -> list[Any]:
        """An answer or an exception of each replica that runs: one may be dying now."""
        response = self._handle.broadcast(method, *arguments)
        try:
            told: list[Any] = await response.results_async(timeout_s=wait_s, return_exceptions=True)
            return told
        except DeploymentUnavailableError:  # there is none now
            return []

    def _too_late(self) -> Refusal:
        return too_late(f"no replica ended this within {self._wait_s:g} s")


def open_release(name: str, *, deadline_s: float = ServingSettings.deadline_s) -> ServeRelease:
    """The release of an application; calls wait where it does not run yet.

    A replica ends a call at `deadline_s` itself; here those end that no replica took or ended.
    """
    app = application_name(name)
    handle = serve.get_deployment_handle(DEPLOYMENT, app, _check_exists=False)
    return ServeRelease(name, handle, deadline_s)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BackPressureError as error:
        raise BusyError from error
    except RayTaskError as error:
        if isinstance(error.cause, LOST):
            raise ReplicaLostError from error
        raise
    except LOST as error:
        raise ReplicaLostError from error
