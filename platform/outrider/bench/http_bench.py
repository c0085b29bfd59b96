"""What every experiment over HTTP works with: a server, an engine without one, and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from outrider.bench.arm import Arm
from outrider.bench.http_arms import AnsweringArm, BareArm, HttpArm
from outrider.bench.http_client import HttpClient, Wish, open_client
from outrider.bench.http_processes import cpu_s
from outrider.bench.http_server import Server
from outrider.bench.paired import Pairing, measure
from outrider.bench.workload import Prompt
from outrider.core import Clock
from outrider.engine.runner import Runner

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class HttpBench:
    """Prefix caching and the shared corpus are off on both sides: prompts are decoded by every
    arm in turn, and none may learn from another or from itself."""

    serve: Callable[[int], AbstractContextManager[Server]]  # number of replicas -> a ready server
    open_runner: Callable[[], Runner]  # the same engine as a replica has
    prompts: Sequence[Prompt]
    warmup: Sequence[Prompt]  # other prompts, answered before anything is timed
    max_tokens: int
    max_rows: int  # of a replica
    num_repeats: int
    num_streams: int
    minutes: float
    timeout_s: float  # a request that takes longer has hung
    clock: Clock
    tell: Callable[[str], None]
    conditions: str
    twin: Mapping[str, Any] = field(default_factory=dict)  # deploys the server's release again

    @contextmanager
    def connected(self, num_replicas: int = 1) -> Iterator[Connection]:
        """A server and a client of it."""
        with self.serve(num_replicas) as server, asyncio.Runner() as loop:
            opened = open_client(server.url, clock=self.clock, timeout_s=self.timeout_s)
            client = loop.run(_entered(opened))
            try:
                yield Connection(self, server, client, loop)
            finally:
                loop.run(_left(opened))

    @contextmanager
    def bare(self, server: Server, in_flight: int) -> Iterator[BareArm]:
        """The engine in this process. It sleeps while the server's turn is on, and vice versa."""
        self.tell("loading the bare engine")
        runner = self.open_runner()
        pid = server.pid
        try:
            yield BareArm(
                "bare",
                runner,
                max_tokens=self.max_tokens,
                in_flight=in_flight,
                clock=self.clock,
                cpu_s=lambda: 0.0 if pid is None else cpu_s(pid),
            )
        finally:
            runner.close()

    def compare(
        self, title: str, arms: Sequence[AnsweringArm], batches: Sequence[Sequence[Prompt]]
    ) -> Pairing:
        """Warm every arm up on other prompts, then measure them in turn."""
        for arm in arms:
            self.tell(f"{title}: warming up {arm.name}")
            arm.decode(self.warmup)
            arm.forget()
        sides: list[Arm] = list(arms)
        return measure(
            sides,
            batches,
            num_repeats=self.num_repeats,
            progress=lambda at: self.tell(f"{title}: {at}"),
        )


@dataclass(frozen=True, slots=True)
class Connection:
    """A server under measurement, and the loop that its client lives in."""

    bench: HttpBench
    server: Server
    client: HttpClient
    loop: asyncio.Runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end; of many tasks that failed together the first is raised."""
        try:
            return self.loop.run(work)
        except ExceptionGroup as several:
            raise several.exceptions[0] from several

    def arm(self, name: str, in_flight: int, wish: Wish) -> HttpArm:
        return HttpArm(
            name,
            self.client,
            wish,
            in_flight=in_flight,
            clock=self.bench.clock,
            loop=self.loop,
        )


async def _entered(opened: AbstractAsyncContextManager[HttpClient]) -> HttpClient:
    return await opened.__aenter__()


async def _left(opened: AbstractAsyncContextManager[HttpClient]) -> None:
    await opened.__aexit__(None, None, None)
