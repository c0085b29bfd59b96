"""One side: how requests end, and what is seen of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from trial_toys import ALPHABET, ROUND_S, at_pace, case, contender, next_letter

from outrider.core import SamplingParams
from outrider.testing import AlphabetEngine, ManualClock
from outrider.trial.case import Case
from outrider.trial.plan import Batch
from outrider.trial.side import Lost
from outrider.trial.worker import Worker


def batch(*cases: Case, in_flight: int = 1) -> Batch:
    return Batch(number=3, in_flight=in_flight, cases=cases)


def on_clock(clock: ManualClock, **pace: object) -> Worker:
    worker = Worker.open(contender("x", at_pace(clock, **pace)), timeout_s=1e6)  # type: ignore[arg-type]
    worker.clock = clock
    return worker


def test_times_and_counts_of_a_request_are_those_of_its_rounds() -> None:
    clock = ManualClock()
    worker = on_clock(clock)
    measured = worker.decode(batch(case("one")))
    (seen,), (turn,) = measured.observations, measured.turns
    assert bytes(seen.token_ids[:-1]).decode() == ALPHABET[2:], "after b: c to z, then EOS"
    assert seen.emitted == 25
    assert seen.first_token_s == pytest.approx(ROUND_S)
    assert seen.inter_token_s == pytest.approx(ROUND_S)
    assert seen.total_s == pytest.approx(25 * ROUND_S)
    assert (turn.seconds, turn.emitted) == (pytest.approx(25 * ROUND_S), 25)
    assert turn.batch == seen.batch == 3
    assert (seen.error, seen.finish_reason) == ("", "stop")
    worker.close()


def test_each_turn_begins_as_the_first_did() -> None:
    clock = ManualClock()
    worker = on_clock(clock, length=3)
    first, second = (worker.decode(batch(case("one"))).observations[0] for _ in range(2))
    assert first.drafted > 0
    assert (first.total_s, first.drafted) == (pytest.approx(second.total_s), second.drafted)
    worker.close()


def test_so_many_are_in_flight_and_all_come_back_in_order() -> None:
    worker = Worker.open(contender("x", AlphabetEngine(delay_s=0.002)), timeout_s=60)
    cases = [case(f"c{i}") for i in range(7)]
    seen = worker.decode(batch(*cases, in_flight=3)).observations
    assert [one.case for one in seen] == [one.name for one in cases]
    assert not any(one.error for one in seen)
    starts = sorted(one.submitted_s for one in seen)
    ends = [one.submitted_s + one.total_s for one in seen]
    for index in range(3, 7):
        assert sum(end <= starts[index] for end in ends) >= index - 2, "one ends, one begins"
    worker.close()


def broken(prefix: Sequence[int]) -> list[float]:
    """NaN where the prompt says so."""
    return [float("nan")] * 257 if ord("!") in prefix else next_letter(prefix)


def test_failures_are_told_by_kind_and_end_nothing_else() -> None:
    clock = ManualClock()
    worker = on_clock(clock, logits=broken)
    unfit = Case(name="long", messages=({"role": "user", "content": "a" * 5000},))
    seen = worker.decode(batch(case("ok"), case("bad!"), unfit, case("fine")))
    assert [one.error for one in seen.observations] == ["", "error", "refused", ""]
    assert (seen.turns[0].num_failed, seen.turns[0].num_requests) == (2, 4)
    assert seen.turns[0].emitted == 50, "of full answers only"
    worker.close()


def test_a_request_that_takes_too_long_is_cancelled_and_the_next_one_answered() -> None:
    worker = Worker.open(contender("x", AlphabetEngine(delay_s=0.2)), timeout_s=0.6)
    short = Case(
        name="short",
        messages=({"role": "user", "content": "ab"},),
        params=SamplingParams(max_tokens=1),
    )
    slow = Case(name="slow", messages=({"role": "user", "content": "ab"},))
    seen = worker.decode(batch(slow, short)).observations
    assert [one.error for one in seen] == ["timeout", ""]
    worker.close()


def test_an_engine_that_stands_still_is_lost(tmp_path: Path) -> None:
    wedge = tmp_path / "wedge"
    worker = Worker.open(contender("x", AlphabetEngine(wedge=wedge)), timeout_s=0.2)
    wedge.touch()
    freed = threading.Timer(2.0, wedge.unlink)
    freed.start()
    began = time.monotonic()
    with pytest.raises(Lost, match="does not end"):
        worker.decode(batch(case("one")))
    assert time.monotonic() - began < 60, "it is given up, not waited for"
    freed.join()
    worker.close()


def test_a_margin_is_asked_for_behind_the_prompt_and_the_answer_so_far() -> None:
    clock = ManualClock()
    worker = on_clock(clock)
    greedy, sampled = case("one"), case("one", temperature=0.5)
    assert worker.margin(greedy, (ord("c"),), (1, 2)) == pytest.approx(30.0)
    assert worker.margin(sampled, (ord("c"),), (ord("d"), ord("e"))) > 10
    worker.close()
