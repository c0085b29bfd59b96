"""What rounds gave against plain decoding: in seconds, and to the breakers of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from outrider.config.schema import (
    BreakerSettings,
    DraftLengthSettings,
    EngineSettings,
    LengthPolicy,
)
from outrider.core import Mode, Request, SamplingParams, Speculation
from outrider.engine.cost import CostModel
from outrider.engine.draft_sums import DraftSums
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.engine import Engine
from outrider.engine.pace import Pace
from outrider.engine.row_outcome import RowOutcome, RowState
from outrider.engine.speculation import SpeculationPolicy
from outrider.testing import LetterTokenizer, ManualClock, ScriptedDrafter, ScriptedModel, finish

VOCAB = 8
LENGTH = 3
Script = Callable[[Sequence[int], int], list[int]]
Seconds = Callable[[int, int], float]
UNBROKEN = BreakerSettings(enabled=False)


def likeliest(prefix: Sequence[int]) -> int:
    return (5 * prefix[-1] + 3 * len(prefix)) % (VOCAB - 1)


def logits(prefix: Sequence[int]) -> list[float]:
    return [float(token == likeliest(prefix)) for token in range(VOCAB)]


def right(tokens: Sequence[int], length: int) -> list[int]:
    drafted = list(tokens)
    for _ in range(length):
        drafted.append(likeliest(drafted))
    return drafted[len(tokens) :]


def wrong(tokens: Sequence[int], length: int) -> list[int]:
    return [(token + 1) % (VOCAB - 1) for token in right(tokens, length)]


def made(
    script: Script, seconds: Seconds, clock: ManualClock, breaker: BreakerSettings = UNBROKEN
) -> Engine:
    """An engine on a machine that takes `seconds(rows, tokens)` for a forward."""
    length = DraftLengthSettings(policy=LengthPolicy.FIXED, max=LENGTH)
    engine = Engine(
        ScriptedModel(logits, vocab_size=VOCAB, num_blocks=1024, clock=clock, cost=seconds),
        LetterTokenizer("ABCDEFG"),
        GuardedDrafter(ScriptedDrafter(script), vocab_size=VOCAB, clock=clock),
        SpeculationPolicy(length, breaker, CostModel({})),
        EngineSettings(max_rows=8),
        clock=clock,
    )
    engine.calibrate()
    return engine


def drafts(script: Script, seconds: Seconds, mode: Mode) -> DraftSums:
    """Of four requests."""
    clock = ManualClock()
    engine = made(script, seconds, clock)
    engine.set_control(mode)
    before, params = clock.now, SamplingParams(max_tokens=100, ignore_eos=True)
    asked = [Request(request_id=f"r{i}", prompt_ids=(i,), params=params) for i in range(4)]
    finish(engine, *asked)
    told = engine.load().drafts
    assert told.rounds_s == pytest.approx(clock.now - before)
    return told


def free(rows: int, tokens: int) -> float:
    return 0.02 + 0.002 * rows


def dear(rows: int, tokens: int) -> float:
    return 0.01 + 0.002 * rows + 0.004 * tokens


@pytest.mark.parametrize(
    ("script", "seconds", "ratio"),
    [
        (right, free, 1 + LENGTH),
        (right, dear, (1 + LENGTH) * dear(4, 4) / dear(4, 16)),
        (wrong, free, 1.0),
        (wrong, dear, dear(4, 4) / dear(4, 16)),
    ],
)
def test_what_drafting_gives_over_plain_decoding_is_told_in_seconds(
    script: Script, seconds: Seconds, ratio: float
) -> None:
    told = drafts(script, seconds, Mode.SPECULATIVE)
    assert told.plain_rounds_s / told.rounds_s == pytest.approx(ratio, rel=0.1)


def test_plain_decoding_takes_what_plain_decoding_takes() -> None:
    told = drafts(right, dear, Mode.PLAIN)
    assert told.plain_rounds_s == told.rounds_s > 0.0


def outcome(emitted: int, drafted: int = 3) -> RowOutcome:
    return RowOutcome(RowState(0), drafted=drafted, emitted=emitted)


def test_each_token_beyond_the_first_is_worth_a_rows_share_of_a_plain_round_now() -> None:
    pace = Pace(num_rows=2, num_drafted=6, plain_s=0.02, extra_s=0.01, slowness=2.0)
    whole = pace.sums(0.06, [outcome(4), outcome(1)])
    assert whole.plain_rounds_s == pytest.approx(0.06 - 2 * 0.01 + 3 * 2 * 0.02 / 2)
    cropped = pace.sums(0.06, [outcome(2), outcome(1)])
    assert cropped.plain_rounds_s == pytest.approx(0.06 - 2 * 0.01 + 1 * 2 * 0.02 / 2)
    assert whole.rounds_s == cropped.rounds_s == 0.06


def test_preparing_for_a_size_that_drafting_brought_about_is_its_own_cost() -> None:
    pace = Pace(1, 3, plain_s=0.02, extra_s=0.01, slowness=10.0, was_unprepared=True)
    assert pace.sums(0.3, [outcome(1)]) == DraftSums(rounds_s=0.3, plain_rounds_s=0.03 - 0.01)
    plain = Pace(1, 0, plain_s=0.02, extra_s=0.0, slowness=10.0, was_unprepared=True)
    assert plain.sums(0.3, [outcome(1, 0)]) == DraftSums(rounds_s=0.3, plain_rounds_s=0.3)


def test_a_clock_that_stood_still_tells_nothing() -> None:
    pace = Pace(1, 3, plain_s=0.02, extra_s=0.01, slowness=1.0)
    assert pace.sums(0.0, [outcome(4)]) == DraftSums()


def test_rows_whose_breaker_has_opened_are_told_while_they_run() -> None:
    """One row drafts wrong tokens, the other asked for none."""
    engine = made(wrong, dear, ManualClock(), BreakerSettings())
    params = SamplingParams(max_tokens=200, ignore_eos=True)
    plain = Speculation(enabled=False)
    engine.submit(Request(request_id="r", prompt_ids=(1,), params=params))
    engine.submit(Request(request_id="p", prompt_ids=(2,), params=params, speculation=plain))
    told = {engine.stats()["num_open_rows"]}
    while engine.has_work:
        engine.step()
        told.add(engine.stats()["num_open_rows"])
    assert told == {0, 1}
    assert engine.stats()["num_open_rows"] == 0
