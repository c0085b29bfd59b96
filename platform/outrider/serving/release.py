"""A release's replicas behind a Serve handle: what `messages.Release` asks for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from ray import serve
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
)

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
STATS_WAIT_S = 8.0
LOST = (RayActorError, DeploymentUnavailableError, ReplicaUnavailableError)


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
        await self._board.write.remote(control)  # first: a replica that starts now reads it
        # One that is dying now need not hear of it.
        await self._handle.broadcast("control", control).results_async(return_exceptions=True)

    async def stats(self) -> list[ReplicaStats]:
        told = await self._handle.broadcast("stats").results_async(
            timeout_s=STATS_WAIT_S, return_exceptions=True
        )
        return [each for each in told if isinstance(each, ReplicaStats)]


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
