"""A release whose replicas live in this process: the API without Ray, for tests and trials."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from outrider.openai.call import Call
from outrider.serving.messages import (
    BusyError,
    Control,
    Event,
    Events,
    Pulse,
    ReplicaLostError,
    ReplicaStats,
)
from outrider.serving.replica import Replica


class LocalRelease:
    """Calls go round the replicas; `lose` makes one behave as if its process were gone."""

    def __init__(self, name: str, replicas: Sequence[Replica], *, most_calls: int = 1000) -> None:
        self._name = name
        self._replicas = list(replicas)
        self._lost: set[str] = set()
        self._most_calls = most_calls
        self._num_calls = 0
        self._next = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def num_calls(self) -> int:
        """Under way."""
        return self._num_calls

    def close(self) -> None:
        for replica in self._replicas:
            replica.close()

    def lose(self, replica: str) -> None:
        """Calls under way there fail at their next event, new ones at once."""
        self._lost.add(replica)

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        replica = self._take()
        try:
            async with aclosing(replica.stream(call)) as stream:
                async for events in stream:
                    self._check(replica)
                    yield events
        finally:
            self._num_calls -= 1

    async def complete(self, call: Call) -> Events:
        replica = self._take()
        try:
            events = await replica.complete(call)
            self._check(replica)
            return events
        finally:
            self._num_calls -= 1

    async def control(self, control: Control) -> None:
        for replica in self._replicas:
            replica.set_control(control)

    async def stats(self) -> list[ReplicaStats]:
        there = [each for each in self._replicas if each.name not in self._lost]
        return [await replica.stats(self._name) for replica in there]

    async def pulses(self) -> list[Pulse]:
        return [each.pulse() for each in self._replicas if each.name not in self._lost]

    def _take(self) -> Replica:
        if not self._replicas:
            raise ReplicaLostError
        if self._num_calls >= self._most_calls:
            raise BusyError
        self._next += 1
        replica = self._replicas[self._next % len(self._replicas)]
        self._num_calls += 1
        return replica

    def _check(self, replica: Replica) -> None:
        if replica.name in self._lost:
            raise ReplicaLostError


class ScriptedRelease:
    """A release that answers each try by script: messages, and exceptions that it raises there."""

    name = "scripted"

    def __init__(self, *tries: Sequence[Events | Exception]) -> None:
        """A try beyond the last goes as the last one does."""
        self._tries = tries
        self.calls: list[Call] = []  # in the order they came
        self.num_open = 0  # streams that are not closed

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        script = self._next(call)
        self.num_open += 1
        try:
            for each in script:
                if isinstance(each, Exception):
                    raise each
                yield each
        finally:
            self.num_open -= 1

    async def complete(self, call: Call) -> Events:
        joined: list[Event] = []
        for each in self._next(call):
            if isinstance(each, Exception):
                raise each
            joined.extend(each)
        return tuple(joined)

    async def control(self, control: Control) -> None:
        """There is nothing to tell."""

    async def stats(self) -> list[ReplicaStats]:
        return []

    async def pulses(self) -> list[Pulse]:
        return []

    def _next(self, call: Call) -> Sequence[Events | Exception]:
        self.calls.append(call)
        return self._tries[min(len(self.calls), len(self._tries)) - 1]
