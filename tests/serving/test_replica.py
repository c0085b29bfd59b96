"""One engine behind asyncio: answers, leaving, a full house, lateness, a stall."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import (
    Constraint,
    ConstraintKind,
    Fault,
    Mode,
    SamplingParams,
    Speculation,
)
from outrider.engine.runner import Runner
from outrider.openai.call import Call, Endpoint
from outrider.serving.messages import Begun, Control, Ended, Event, Events, Piece, Refusal
from outrider.serving.replica import LONG_PROMPT, Replica
from outrider.testing import AlphabetEngine, ByteTokenizer

SLOW = AlphabetEngine(delay_s=0.01)
WAIT_S = 30.0
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def ask(name: str = "c", **fields: Any) -> Call:
    params = {"max_tokens": 26, "ignore_eos": True} | fields.pop("params", {})
    prompts = fields.pop("prompts", ("!",))
    return Call(
        call_id=name,
        endpoint=Endpoint.TEXT,
        prompts=prompts,
        params=SamplingParams(**params),
        **fields,
    )


ENDLESS = {"max_tokens": 4000}


@asynccontextmanager
async def opened(
    engine: Any = SLOW, *, max_rows: int = 16, **settings: Any
) -> AsyncIterator[Replica]:
    replica = Replica(
        engine, ServingSettings(**settings), EngineSettings(max_rows=max_rows), name="r0"
    )
    try:
        async with asyncio.timeout(WAIT_S):
            yield replica
    finally:
        replica.close()


async def events_of(replica: Replica, call: Call) -> list[Events]:
    async with aclosing(replica.stream(call)) as stream:
        return [events async for events in stream]


async def begin(replica: Replica, call: Call) -> tuple[Any, Events]:
    stream = replica.stream(call)
    return stream, await anext(stream)


async def until_free(replica: Replica) -> None:
    while True:
        load = replica._decoder.load()
        if load.is_idle and load.num_free_blocks == load.num_blocks:
            return
        await asyncio.sleep(0.005)


def text_of(events: Sequence[Event], index: int = 0) -> str:
    pieces = [each for each in events if isinstance(each, Piece)]
    return "".join(each.text for each in pieces if each.index == index)


def refusal(events: Sequence[Event]) -> Refusal:
    (last,) = events
    assert isinstance(last, Refusal)
    return last


def test_a_stream_says_what_the_whole_answer_says() -> None:
    async def story() -> None:
        async with opened() as replica:
            whole = await replica.complete(ask("a", n=2))
            messages = await events_of(replica, ask("b", n=2, stream=True))
            streamed = [event for events in messages for event in events]
            for events in (whole, streamed):
                assert [text_of(events, index) for index in (0, 1)] == [ALPHABET] * 2
                assert isinstance(events[0], Begun)
                assert isinstance(events[-1], Ended)
                assert events[-1].num_completion_tokens == 52
                assert events[-1].num_prompt_tokens == 1
            assert len(messages) > 3

    asyncio.run(story())


def test_the_first_message_has_the_first_token() -> None:
    """P11"""

    async def story() -> None:
        async with opened() as replica:
            stream, first = await begin(replica, ask(stream=True, params=ENDLESS))
            assert isinstance(first[0], Begun)
            assert text_of(first).startswith("a")
            assert (first[0].replica, first[0].mode) == ("r0", Mode.SPECULATIVE)
            await stream.aclose()

    asyncio.run(story())


def test_who_leaves_frees_every_choice_and_the_others_finish() -> None:
    """P07, P09"""

    async def story() -> None:
        async with opened() as replica:
            staying = asyncio.ensure_future(replica.complete(ask("stays")))
            streams = [
                await begin(replica, ask(f"s{i}", stream=True, n=2, params=ENDLESS))
                for i in range(3)
            ]
            waiting = [
                asyncio.ensure_future(replica.complete(ask(f"w{i}", n=2, params=ENDLESS)))
                for i in range(3)
            ]
            await asyncio.sleep(0)
            for stream, _ in streams:
                await stream.aclose()
            for task in waiting:
                task.cancel()
            assert len(text_of(await staying)) == 26
            await until_free(replica)
            assert len(text_of(await replica.complete(ask("next")))) == 26

    asyncio.run(story())


def test_where_every_place_is_taken_the_next_call_is_told_when_to_come_back() -> None:
    """P08"""

    async def story() -> None:
        async with opened(AlphabetEngine(delay_s=0.01, max_rows=2), max_rows=2, max_queue=1) as r:
            streams = [await begin(r, ask(f"s{i}", stream=True, params=ENDLESS)) for i in range(2)]
            waiting = asyncio.ensure_future(r.complete(ask("waits", params=ENDLESS)))
            await asyncio.sleep(0)
            for answer in (
                await r.complete(ask("full")),
                (await events_of(r, ask("full", stream=True)))[0],
            ):
                told = refusal(answer)
                assert (told.status, told.code) == (429, "busy")
                assert told.retry_after_s is not None
                assert told.retry_after_s >= 1
            waiting.cancel()
            for stream, _ in streams:
                await stream.aclose()
            await until_free(r)
            assert len(text_of(await r.complete(ask("later")))) == 26

    asyncio.run(story())


def test_more_choices_than_there_are_places_will_never_fit() -> None:
    async def story() -> None:
        async with opened(max_rows=2, max_queue=1) as replica:
            told = refusal(await replica.complete(ask(n=4)))
            assert (told.status, told.param) == (400, "n")

    asyncio.run(story())


@pytest.mark.parametrize(
    "call",
    [
        ask(prompts=("x" * 5000,)),
        ask(prompts=((999,),)),
        ask(prompts=("\ud800",)),
        ask(constraint=Constraint(ConstraintKind.REGEX, "a+")),  # this engine has no grammars
        ask("a", prompts=("fits", "x" * 5000)),
    ],
)
def test_what_the_engine_can_never_serve_is_a_400(call: Call) -> None:
    async def story() -> None:
        async with opened() as replica:
            assert refusal(await replica.complete(call)).status == 400
            assert refusal((await events_of(replica, call))[0]).status == 400
            await until_free(replica)

    asyncio.run(story())


def test_a_call_that_is_in_flight_already_is_refused_and_nobody_hangs() -> None:
    async def story() -> None:
        async with opened() as replica:
            stream, _ = await begin(replica, ask("twin", stream=True, params=ENDLESS))
            assert refusal(await replica.complete(ask("twin"))).status == 500
            await stream.aclose()

    asyncio.run(story())


def test_a_call_past_its_deadline_ends_and_frees_its_rows(tmp_path: Path) -> None:
    wedge = tmp_path / "wedge"

    async def story() -> None:
        async with opened(AlphabetEngine(wedge=wedge), deadline_s=0.2) as replica:
            wedge.touch()
            assert refusal(await replica.complete(ask("a"))).status == 504
            (last,) = (await events_of(replica, ask("b", stream=True)))[-1]
            assert isinstance(last, Refusal)
            assert (last.status, last.code) == (504, "deadline")
            wedge.unlink()
            await until_free(replica)

    asyncio.run(story())


def test_a_stalled_decode_thread_is_unhealthy_and_a_resting_one_is_not(tmp_path: Path) -> None:
    """P10"""
    wedge = tmp_path / "wedge"

    async def story() -> None:
        async with opened(AlphabetEngine(wedge=wedge), stall_s=0.05) as replica:
            await replica.complete(ask("before"))
            await asyncio.sleep(0.2)
            replica.check_health()
            wedge.touch()
            stuck = asyncio.ensure_future(replica.complete(ask("stuck")))
            await asyncio.sleep(0.2)
            with pytest.raises(Fault, match="r0: the decode thread ended no round"):
                replica.check_health()
            wedge.unlink()
            await stuck
            replica.check_health()

    asyncio.run(story())


def test_a_closed_replica_ends_what_it_has_and_refuses_the_rest() -> None:
    async def story() -> None:
        async with opened() as replica:
            stream, _ = await begin(replica, ask("open", stream=True, params=ENDLESS))
            await asyncio.to_thread(replica.close)
            rest = [event for events in [each async for each in stream] for event in events]
            assert isinstance(rest[-1], Refusal)
            assert rest[-1].status == 503
            assert refusal(await replica.complete(ask("late"))).status == 503

    asyncio.run(story())


def test_a_change_of_mode_reaches_calls_in_flight() -> None:
    async def story() -> None:
        async with opened() as replica:
            stream, _ = await begin(replica, ask("open", stream=True, params={"max_tokens": 200}))
            replica.set_control(Control(mode=Mode.PLAIN))
            rest = [event for events in [each async for each in stream] for event in events]
            assert isinstance(rest[-1], Ended)
            assert rest[-1].counters.drafted < 40  # of 200 tokens: those before the change
            answer = await replica.complete(ask("plain"))
            assert isinstance(answer[0], Begun)
            assert answer[0].mode is Mode.PLAIN
            assert (await replica.stats("main")).mode is Mode.PLAIN
            replica.set_control(Control(max_draft_length=2))
            answer = await replica.complete(ask("two", params={"max_tokens": 100}))
            assert isinstance(answer[-1], Ended)
            assert 0 < answer[-1].counters.drafted <= 2 * answer[-1].counters.num_draft_rounds

    asyncio.run(story())


def test_a_call_that_wants_no_drafts_gets_none() -> None:
    async def story() -> None:
        async with opened() as replica:
            answer = await replica.complete(ask(speculation=Speculation(enabled=False)))
            assert isinstance(answer[0], Begun)
            assert answer[0].mode is Mode.PLAIN
            assert isinstance(answer[-1], Ended)
            assert answer[-1].counters.drafted == 0

    asyncio.run(story())


def test_a_call_with_a_seed_is_the_same_again_and_one_without_is_not() -> None:
    async def story() -> None:
        async with opened(AlphabetEngine()) as replica:
            warm = {"temperature": 5.0, "max_tokens": 40}
            texts = [
                text_of(await replica.complete(ask(f"c{i}", seed=seed, params=warm)))
                for i, seed in enumerate((3, 3, None, None))
            ]
            assert texts[0] == texts[1]
            assert len(set(texts)) == 3

    asyncio.run(story())


@dataclass(frozen=True)
class WatchedEngine:
    """Notes on which threads prompts are read."""

    threads: list[str]

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        runner, _ = AlphabetEngine()()
        return runner, WatchedTokenizer(self.threads)


class WatchedTokenizer(ByteTokenizer):
    def __init__(self, threads: list[str]) -> None:
        self._threads = threads

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        self._threads.append(threading.current_thread().name)
        return [33]


def test_a_long_prompt_does_not_hold_up_the_loop() -> None:
    threads: list[str] = []

    async def story() -> None:
        async with opened(WatchedEngine(threads)) as replica:
            for length in (10, LONG_PROMPT + 1):
                content = {"role": "user", "content": "x" * length}
                call = Call(
                    call_id="c",
                    endpoint=Endpoint.CHAT,
                    messages=(content,),
                    params=SamplingParams(max_tokens=2),
                )
                assert text_of(await replica.complete(call))

    asyncio.run(story())
    assert threads[0] == threading.main_thread().name != threads[1]


def test_what_a_replica_tells_of_itself() -> None:
    async def story() -> None:
        async with opened() as replica:
            assert replica.autoscaling_stats() == {"queued_tokens": 0.0, "free_blocks_ratio": 1.0}
            stream, _ = await begin(replica, ask("open", stream=True, params=ENDLESS))
            told = await replica.stats("main")
            assert (told.release, told.replica, told.num_running) == ("main", "r0", 1)
            assert told.counters.emitted > 0
            assert told.breaker_phase == "closed"
            assert told.breaker_sentence == "Speculation is allowed."
            assert (told.num_open_rows, told.max_waiting) == (0, ServingSettings.max_queue)
            assert told.drafts.rounds_s > 0.0
            assert sum(each.drafted for each in told.by_drafter.values()) == told.counters.drafted
            scaling = replica.autoscaling_stats()
            assert 3000 < scaling["queued_tokens"] <= 4001
            assert 0 < scaling["free_blocks_ratio"] < 1
            await stream.aclose()
            await asyncio.to_thread(replica.close)
            silent = await replica.stats("main")  # its decode thread has ended
            assert (silent.breaker_phase, silent.has_counted) == ("", False)
            assert silent.drafts.rounds_s >= told.drafts.rounds_s  # and what it did stays told

    asyncio.run(story())
