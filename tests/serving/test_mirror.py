"""A shadow never holds up its primary, goes with it, and finds room or is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from outrider.core import Counters, Mode, SamplingParams
from outrider.openai.call import Call, Endpoint
from outrider.serving.desk import Desk, Trip
from outrider.serving.local import ScriptedRelease
from outrider.serving.messages import (
    Begun,
    BusyError,
    Ended,
    Events,
    Piece,
    Refusal,
    ReplicaLostError,
)
from outrider.serving.mirror import Mirror
from outrider.serving.refusals import BUSY, failed
from outrider.serving.sample import Cursor, Likeness, Reading
from outrider.serving.split import Plan

BEGUN = Begun(replica="r", mode=Mode.PLAIN, num_prompt_tokens=1)
ENDED = Ended(num_prompt_tokens=1, num_completion_tokens=1, counters=Counters(), mode=Mode.PLAIN)
PLAN = Plan(stable="stable", candidate="next", shadow_share=1.0, shadow_in_flight=2, salt="s")


def answer(*token_ids: int) -> Events:
    return (BEGUN, Piece(index=0, token_ids=token_ids, finish_reason="stop"), ENDED)


class HeldRelease(ScriptedRelease):
    """Answers when it is told to."""

    def __init__(self, *tries: Any) -> None:
        super().__init__(*tries)
        self.go = asyncio.Event()

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        self.num_open += 1
        try:
            await self.go.wait()
        finally:
            self.num_open -= 1
        async for events in super().stream(call):
            yield events


def call(**fields: Any) -> Call:
    named = {"call_id": "c", "endpoint": Endpoint.TEXT, "prompts": ("x",), "stream": True}
    return Call(**{"params": SamplingParams(), **named, **fields})


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Counterpart:
    """A desk with a candidate that mirrors."""

    def __init__(self, candidate: ScriptedRelease, plan: Plan = PLAN) -> None:
        self.stable = ScriptedRelease([answer(1, 2)])
        self.candidate = candidate
        self.desk = Desk({"stable": self.stable, "next": candidate}, plan, most_calls=100)
        self.shadows = Mirror(self.desk, lambda *_: True, draw_seed=lambda: 5)

    async def ask(self, made: Call, sent: Events = answer(1, 2)) -> None:  # noqa: B008
        """A primary that ends at once with `sent`."""
        shadow = self.shadows.begin(made, self.trip(made), "q")
        shadow.see(sent)
        shadow.end()
        await settle()

    def trip(self, made: Call) -> Trip:
        return self.desk.trip(made)

    def read(self) -> Reading:
        return self.desk.book.read(Cursor())


def told(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 10))  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("tokens", "likeness"), [((1, 2), Likeness.SAME), ((1,), Likeness.MISMATCH)]
)
def test_a_mirrored_answer_is_compared_and_is_a_sample(
    stream: bool, tokens: tuple[int, ...], likeness: Likeness
) -> None:
    async def story() -> None:
        site = Counterpart(ScriptedRelease([answer(*tokens)]))
        await site.ask(call(stream=stream))
        reading = site.read()
        assert [each.likeness for each in reading.comparisons] == [likeness]
        counts = site.desk.candidate_counts.told["next"]
        assert (counts["num_compared"], counts["num_mismatches"]) == (1, len(tokens) % 2)
        (sample,) = reading.samples
        assert (sample.is_shadow, sample.arm, sample.error) == (True, "candidate", "")
        (mirrored,) = site.candidate.calls
        assert mirrored.yields
        assert mirrored.call_id != "c"
        assert mirrored.params.top_logprobs == 5

    told(story)


def test_one_more_than_there_is_room_for_is_dropped_and_counted() -> None:
    async def story() -> None:
        candidate = HeldRelease([answer(1, 2)])
        site = Counterpart(candidate)
        for _ in range(5):
            await site.ask(call())
        assert candidate.num_open == site.shadows.num_in_flight == 2
        assert site.read().num_shadows_dropped == 3
        assert site.desk.candidate_counts.told["next"]["num_shadows_dropped"] == 3
        candidate.go.set()
        await settle()
        assert site.shadows.num_in_flight == 0
        assert len(site.read().comparisons) == 2

    told(story)


@pytest.mark.parametrize("sent", [(), (BEGUN,), (BUSY,), (failed("no"),)])
def test_it_goes_with_a_primary_that_was_cancelled_or_failed(sent: Events) -> None:
    async def story() -> None:
        candidate = HeldRelease([answer(1, 2)])
        site = Counterpart(candidate)
        for has_begun in (True, False):
            shadow = site.shadows.begin(call(), site.trip(call()), "q")
            if has_begun:
                await settle()
            shadow.see(sent)
            shadow.end()
            await settle()
            assert candidate.num_open == site.shadows.num_in_flight == 0
        assert site.read().samples == site.read().comparisons == ()

    told(story)


@pytest.mark.parametrize("script", [[BusyError()], [(BUSY,)]])
def test_one_that_finds_no_row_free_is_dropped_and_no_fault(script: list[Any]) -> None:
    async def story() -> None:
        site = Counterpart(ScriptedRelease(script))
        await site.ask(call())
        assert site.read().num_shadows_dropped == 1
        assert site.read().samples == ()

    told(story)


def test_one_that_takes_too_long_is_dropped_and_no_fault() -> None:
    async def story() -> None:
        candidate = HeldRelease([answer(1)])
        site = Counterpart(candidate, replace(PLAN, shadow_deadline_s=0.01))
        await site.ask(call())
        await asyncio.sleep(0.05)
        assert candidate.num_open == site.shadows.num_in_flight == 0
        assert (site.read().num_shadows_dropped, site.read().samples) == (1, ())

    told(story)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([ReplicaLostError()], "replica_lost"),
        ([KeyError("prompt text")], "gateway"),
        ([(failed("broken", "engine"),)], "engine"),
        ([(Refusal(status=400, message="too long", kind="invalid_request_error"),)], "refused"),
    ],
)
def test_what_stable_serves_and_the_candidate_does_not_is_the_candidates_fault(
    script: list[Any], error: str
) -> None:
    async def story() -> None:
        site = Counterpart(ScriptedRelease(script))
        await site.ask(call())
        reading = site.read()
        assert [sample.error for sample in reading.samples] == [error]
        assert [each.likeness for each in reading.comparisons] == [Likeness.UNCOMPARED]

    told(story)


def test_a_drawn_call_without_a_seed_gets_one_for_both() -> None:
    async def story() -> None:
        site = Counterpart(ScriptedRelease([answer(1, 2)]))
        drawn = call(params=SamplingParams(temperature=1.0))
        prepared = site.shadows.prepared(drawn, site.trip(drawn))
        await site.ask(prepared)
        assert prepared.seed == site.candidate.calls[0].seed == 5
        assert site.shadows.prepared(call(), site.trip(call())).seed is None
        assert [each.likeness for each in site.read().comparisons] == [Likeness.SAME]

    told(story)


def test_a_busy_gateway_mirrors_nothing() -> None:
    async def story() -> None:
        site = Counterpart(ScriptedRelease([answer(1, 2)]))
        site.desk.num_calls = 60  # of 100
        await site.ask(call())
        assert site.candidate.calls == []
        assert site.read().num_shadows_dropped == 1

    told(story)
