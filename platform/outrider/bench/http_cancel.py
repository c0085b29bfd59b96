"""Streams whose clients close the socket after the first token: nothing may stay behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from outrider.bench.figure import Figure, Unit
from outrider.bench.http_bench import Connection, HttpBench
from outrider.bench.http_client import HttpClient, Wish
from outrider.bench.http_in_use import InUse
from outrider.bench.workload import Prompt, repeated

_MOST_HELD = 8  # streams that are open together at the end, and closed at once
_ROUNDS = 2.0
_SLOWER = 1.5  # normal latency: within the noise of single requests on two cores
_NUM_PROBES = 5
_NUM_LOOKS = 600
_LOOK_S = 0.05
_ENDLESS = Wish(max_tokens=1000, ignore_eos=True)  # nobody waits for the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """What was found after every stream was closed."""

    left: InUse
    num_rounds: int  # run after the last sockets were closed
    before_s: float  # to the first token of a request alone, median
    after_s: float


def cancelled_streams(bench: HttpBench) -> list[Figure]:
    """Open the streams, close each after its first token, look what is still in use."""
    with bench.connected() as http:
        bench.tell(f"cancelled streams: {bench.num_streams}")
        seen = http.run(_cancel_all(http))
    shared: dict[str, Any] = {"is_ceiling": True, "conditions": bench.conditions}
    what = f"{bench.num_streams} cancelled streams"
    return [
        _count("http_cancelled_rows", f"{what}: rows in use", seen.left.num_rows, shared),
        _count("http_cancelled_blocks", f"{what}: blocks in use", seen.left.num_blocks, shared),
        _count(
            "http_cancelled_rounds", f"{what}: rounds until then", seen.num_rounds, shared, _ROUNDS
        ),
        Figure(
            name="http_cancelled_latency",
            what=f"{what}: time to first token after / before",
            value=seen.after_s / seen.before_s,
            bound=_SLOWER,
            aim=1.0,
            details={"before_s": seen.before_s, "after_s": seen.after_s},
            **shared,
        ),
    ]


def _count(name: str, what: str, value: int, shared: dict[str, Any], bound: float = 0.0) -> Figure:
    return Figure(
        name=name, what=what, value=value, bound=bound, aim=0.0, unit=Unit.COUNT, **shared
    )


async def _cancel_all(http: Connection) -> Cancelled:
    bench, client = http.bench, http.client
    await _alone(client, bench.warmup)  # a cold server would make the comparison easy
    before_s = await _alone(client, bench.prompts)
    num_held = min(_MOST_HELD, bench.max_rows)
    times = -(-bench.num_streams // len(bench.prompts))
    streams = repeated(bench.prompts, times)[: bench.num_streams]
    async with asyncio.TaskGroup() as tasks:
        for prompt in streams[num_held:]:
            tasks.create_task(_begin_and_close(client, prompt))
    rounds = await _close_together(client, streams[:num_held])
    left = await _settled(client)
    return Cancelled(
        left=left,
        num_rounds=left.num_rounds - rounds,
        before_s=before_s,
        after_s=await _alone(client, bench.prompts),
    )


async def _alone(client: HttpClient, prompts: Sequence[Prompt]) -> float:
    """Seconds to the first token of one request at a time, median."""
    wish = Wish(max_tokens=2)
    answers = [await client.ask(prompt, wish) for prompt in prompts[:_NUM_PROBES]]
    return median(answer.first_token_s or answer.total_s for answer in answers)


async def _begin_and_close(client: HttpClient, prompt: Prompt) -> None:
    async with client.begun(prompt, _ENDLESS):
        pass


async def _close_together(client: HttpClient, prompts: Sequence[Prompt]) -> int:
    """Close all of them in one instant; rounds that the server had run just before it."""
    all_began, close = asyncio.Barrier(len(prompts) + 1), asyncio.Event()

    async def hold(prompt: Prompt) -> None:
        async with client.begun(prompt, _ENDLESS):
            await all_began.wait()
            await close.wait()

    async with asyncio.TaskGroup() as tasks:
        for prompt in prompts:
            tasks.create_task(hold(prompt))
        await all_began.wait()
        rounds = (await _in_use(client)).num_rounds
        close.set()
    return rounds


async def _settled(client: HttpClient) -> InUse:
    """What is in use once nothing is, or what still is when patience ends."""
    for _ in range(_NUM_LOOKS):
        seen = await _in_use(client)
        if not (seen.num_rows or seen.num_blocks):
            break
        await asyncio.sleep(_LOOK_S)
    return seen


async def _in_use(client: HttpClient) -> InUse:
    return InUse.of(await client.get("/admin/status"))
