"""A release's replicas behind a Serve handle: what `messages.Release` asks for."""

from __future__ import annotations

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

from outrider.core import Fault
from outrider.openai.call import Call
from outrider.serving.board import open_board
from outrider.serving.messages import (
    BusyError,
    Control,
    Events,
    ReplicaLostError,
    ReplicaStats,
)

DEPLOYMENT = "Replica"
ANSWER_WAIT_S = 8.0  # of every replica, to what is asked of all
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

    def __init__(self, name: str, handle: Any) -> None:
        self._name = name
        self._handle = handle
        self._streaming = handle.options(stream=True, method_name="stream")
        self._board = open_board(name)

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        with _told():
            response = self._streaming.remote(call)
        try:
            with _told():
                async for events in response:
                    yield events
        finally:
            response.cancel()  # nothing happens where it has ended

    async def complete(self, call: Call) -> Events:
        with _told():
            response = self._handle.complete.remote(call)
            try:
                events: Events = await response
                return events
            finally:
                response.cancel()

    async def control(self, control: Control) -> None:
        """Raises `Fault` where a replica that runs does not answer in time."""
        await self._board.write.remote(control)  # first: a replica that starts now reads it
        try:
            await self._ask_all("control", control)
        except TimeoutError as error:
            raise Fault(f"a replica of {self._name} did not answer; send it again") from error

    async def stats(self) -> list[ReplicaStats]:
        told = await self._ask_all("stats")
        return [each for each in told if isinstance(each, ReplicaStats)]

    async def _ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """An answer or an exception of each replica that runs: one may be dying now."""
        response = self._handle.broadcast(method, *arguments)
        try:
            told: list[Any] = await response.results_async(
                timeout_s=ANSWER_WAIT_S, return_exceptions=True
            )
            return told
        except DeploymentUnavailableError:  # there is none now
            return []


def open_release(name: str) -> ServeRelease:
    """The release of an application that runs."""
    return ServeRelease(name, serve.get_deployment_handle(DEPLOYMENT, application_name(name)))


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
