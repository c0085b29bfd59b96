"""One call's way: tried again while nothing was sent, told clearly behind it, never raising."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from outrider.core import Counters, Mode, SamplingParams
from outrider.openai.call import Call, Endpoint
from outrider.serving.desk import Desk, Trip
from outrider.serving.local import ScriptedRelease
from outrider.serving.messages import (
    Begun,
    BusyError,
    Ended,
    Event,
    Events,
    Piece,
    Refusal,
    ReplicaLostError,
)
from outrider.serving.refusals import BUSY, CUT, LEAVING, LOST
from outrider.serving.split import Plan

FIRST: Events = (
    Begun(replica="r", mode=Mode.PLAIN, num_prompt_tokens=1),
    Piece(index=0, text="a", token_ids=(97,)),
)
LAST: Events = (
    Piece(index=0, finish_reason="stop"),
    Ended(num_prompt_tokens=1, num_completion_tokens=1, counters=Counters(), mode=Mode.PLAIN),
)
LOSS = ReplicaLostError()
CLOSING = Refusal(status=503, message="closing", kind="server_error")
WRONG = Refusal(status=400, message="no", kind="invalid_request_error")


def call(*, stream: bool = True) -> Call:
    return Call(
        call_id="c", endpoint=Endpoint.TEXT, prompts=("x",), params=SamplingParams(), stream=stream
    )


def ask(
    release: ScriptedRelease, *, stream: bool = True, deadline_s: float = 0.5
) -> tuple[list[Event], Trip]:
    desk = Desk({"scripted": release}, Plan(stable="scripted"), most_calls=1, deadline_s=deadline_s)
    trip = desk.trip(call(stream=stream))

    async def read() -> list[Event]:
        return [event async for some in desk.events(call(stream=stream), trip) for event in some]

    events = asyncio.run(read())
    assert desk.num_calls == release.num_open == 0
    return events, trip


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("first", [[LOSS], [(CLOSING,)]])
def test_a_call_that_has_not_begun_gets_another_replica(
    stream: bool,
    first: list[Events | Exception],
) -> None:
    release = ScriptedRelease(first, [LOSS], [FIRST, LAST])
    events, trip = ask(release, stream=stream)
    assert events == [*FIRST, *LAST]
    assert trip.num_retries == 2
    names = [each.call_id for each in release.calls]
    assert len(set(names)) == len(names) == 3


def test_a_whole_answer_is_asked_for_again_however_far_it_was() -> None:
    events, _ = ask(ScriptedRelease([FIRST, LOSS], [FIRST, LAST]), stream=False)
    assert events == [*FIRST, *LAST]


@pytest.mark.parametrize("script", [[FIRST, LOSS], [FIRST]])
def test_a_stream_that_has_begun_ends_with_an_error_and_is_not_begun_again(
    script: list[Events | Exception],
) -> None:
    """Also where it only breaks off: an answer that has no end is not a whole one."""
    release = ScriptedRelease(script)
    assert ask(release)[0] == [*FIRST, CUT]
    assert len(release.calls) == 1


def test_tries_end_and_the_last_reason_is_told() -> None:
    assert ask(ScriptedRelease([LOSS]))[0] == [LOST]
    for stream in (True, False):
        assert ask(ScriptedRelease([]), stream=stream)[0] == [LOST]
    assert ask(ScriptedRelease([(CLOSING,)]))[0] == [CLOSING]


@pytest.mark.parametrize(
    ("script", "told"), [([BusyError()], BUSY), ([(WRONG,)], WRONG), ([(BUSY,)], BUSY)]
)
def test_what_another_try_would_not_mend_is_told_at_once(
    script: list[Events | Exception], told: Refusal
) -> None:
    release = ScriptedRelease(script)
    assert ask(release)[0] == [told]
    assert len(release.calls) == 1


@pytest.mark.parametrize("before", [[], [FIRST]])
def test_what_nobody_foresaw_is_an_event_too(before: list[Events | Exception]) -> None:
    events, _ = ask(ScriptedRelease([*before, KeyError("prompt text")]))
    assert isinstance(events[-1], Refusal)
    assert (events[-1].status, events[-1].message) == (500, "the gateway failed: KeyError")


def test_a_call_beyond_the_bound_is_refused_and_a_closed_one_makes_room() -> None:
    release = ScriptedRelease([FIRST, LAST])
    desk = Desk({"scripted": release}, Plan(stable="scripted"), most_calls=1)

    async def story() -> None:
        async with aclosing(desk.events(call(), desk.trip(call()))) as first:
            assert await anext(first) == FIRST
            second = desk.events(call(), desk.trip(call()))
            assert [events async for events in second] == [(BUSY,)]
        assert release.num_open == 0
        assert [events async for events in desk.events(call(), desk.trip(call()))] == [FIRST, LAST]

    asyncio.run(story())


def test_a_desk_that_leaves_ends_what_it_has_and_takes_nothing_more() -> None:
    desk = Desk({"scripted": ScriptedRelease([FIRST, LAST])}, Plan(stable="scripted"), most_calls=2)

    async def story() -> None:
        under_way = desk.events(call(), desk.trip(call()))
        assert await anext(under_way) == FIRST
        desk.is_leaving = True
        assert [events async for events in desk.events(call(), desk.trip(call()))] == [(LEAVING,)]
        assert [events async for events in under_way] == [LAST]

    asyncio.run(story())
