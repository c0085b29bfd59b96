"""Replicas are killed under load: no request may be lost."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from outrider.bench.figure import Figure, Unit
from outrider.bench.http_bench import Connection, HttpBench
from outrider.bench.http_client import Wish
from outrider.bench.http_in_use import replica_stats
from outrider.bench.http_processes import replicas
from outrider.bench.http_summary import summarize
from outrider.bench.load import Answer, ErrorKind, closed_loop
from outrider.bench.workload import Prompt, mixed
from outrider.core import Fault, UserError

_IN_FLIGHT = 16
_NUM_REPLICAS = 2
_KILL_EVERY_S = 60.0
_LOOK_S = 0.5


@dataclass(slots=True)
class Kills:
    """When replicas were killed, and how long until another served in their place, in seconds."""

    at_s: list[float] = field(default_factory=list)
    back_s: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """How requests ended: every one is in exactly one of these."""

    num_full: int = 0
    num_cut_clearly: int = 0  # an error event in a stream that had begun
    num_failed_early: int = 0  # a clear error where nothing had been sent yet
    num_lost: int = 0  # neither a full answer nor a clear error

    @staticmethod
    def of(answers: list[Answer]) -> Fates:
        fates = [_fate(answer) for answer in answers]
        return Fates(**{name: fates.count(name) for name in set(fates)})


def _fate(answer: Answer) -> str:
    if answer.error is None:
        return "num_full"
    if not answer.error.is_clear:
        return "num_lost"
    began = answer.error is ErrorKind.EVENT and answer.first_token_s is not None
    return "num_cut_clearly" if began else "num_failed_early"


def killed_replicas(bench: HttpBench) -> list[Figure]:
    """Half of the requests stream. One replica dies in the middle of every minute."""
    with bench.connected(_NUM_REPLICAS) as http:
        if http.server.pid is None:
            raise UserError("bench.url: replicas are only killed of a server started here")
        answers, kills, seconds = http.run(_kill_under_load(http, http.server.pid))
    if not kills.at_s:
        raise Fault("no replica could be killed: the figure would say nothing")
    fates, summary = Fates.of(answers), summarize(answers, seconds)
    what = (
        f"{len(kills.at_s)} replicas killed in {seconds / 60:.1f} minutes, {len(answers)} requests"
    )
    details = {
        "load": summary.to_dict(),
        "num_cut_clearly": fates.num_cut_clearly,
        "killed_at_s": kills.at_s,
        "back_after_s": kills.back_s,
    }
    return [
        Figure(
            name=name,
            what=f"{what}: {told}",
            value=value,
            bound=0.0,
            aim=0.0,
            is_ceiling=True,
            unit=Unit.COUNT,
            conditions=f"{bench.conditions}; {_IN_FLIGHT} in flight, "
            f"{_NUM_REPLICAS} replicas that share the threads",
            details=details,
        )
        for name, told, value in (
            ("http_killed_lost", "lost", fates.num_lost),
            ("http_killed_early", "errors before the first token", fates.num_failed_early),
        )
    ]


async def _kill_under_load(http: Connection, pid: int) -> tuple[list[Answer], Kills, float]:
    bench = http.bench
    wishes = {
        True: Wish(max_tokens=bench.max_tokens),
        False: Wish(max_tokens=bench.max_tokens, stream=False),
    }

    async def ask(prompt: Prompt) -> Answer:
        streamed = next(turn) % 2 == 0
        answer = await http.client.ask(prompt, wishes[streamed])
        _tell(bench, answer)
        return answer

    turn, started, kills = itertools.count(), bench.clock.monotonic(), Kills()
    end = started + 60 * bench.minutes
    async with asyncio.TaskGroup() as tasks:
        killer = tasks.create_task(_kill_each_minute(http, pid, started, kills))
        answers = await closed_loop(ask, _until(bench, end), _IN_FLIGHT)
        killer.cancel()
    return answers, kills, bench.clock.monotonic() - started


def _until(bench: HttpBench, end: float) -> Iterator[Prompt]:
    """The prompts over and over, until the time is up."""
    for number, prompt in enumerate(itertools.cycle(mixed(bench.prompts))):
        if bench.clock.monotonic() >= end:
            return
        yield replace(prompt, name=f"{prompt.name}#{number}")


async def _kill_each_minute(http: Connection, pid: int, started: float, kills: Kills) -> None:
    bench = http.bench
    every_s = min(_KILL_EVERY_S, 60 * bench.minutes)
    for number in itertools.count():
        await asyncio.sleep(started + (number + 0.5) * every_s - bench.clock.monotonic())
        serving = await _full_house(http, frozenset())
        victim = replicas(pid)[number % _NUM_REPLICAS]
        os.kill(victim, signal.SIGKILL)
        killed = bench.clock.monotonic()
        kills.at_s.append(killed - started)
        bench.tell(f"killed replicas: {victim} killed at {killed - started:.0f} s")
        await _full_house(http, serving)
        kills.back_s.append(bench.clock.monotonic() - killed)


async def _full_house(http: Connection, other_than: frozenset[str]) -> frozenset[str]:
    """Names of the replicas once as many serve as there should be."""
    while True:
        status = await http.client.get("/admin/status")
        names = frozenset(each["replica"] for each in replica_stats(status))
        if len(names) == _NUM_REPLICAS and names != other_than:
            return names
        await asyncio.sleep(_LOOK_S)


def _tell(bench: HttpBench, answer: Answer) -> None:
    if answer.error is not None:
        began = "begun" if answer.arrivals_s else "not begun"
        bench.tell(f"killed replicas: {answer.error} (status {answer.status}, {began})")
