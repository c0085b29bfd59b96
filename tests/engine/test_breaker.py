"""The breaker takes speculation back on evidence only, and always tries it again."""

from __future__ import annotations

import pytest

from outrider.config.schema import BreakerSettings
from outrider.engine.breaker import (
    CLOSED,
    BreakerState,
    Observation,
    Phase,
    advance,
    probing_rows,
)

SETTINGS = BreakerSettings()
WRONG = Observation(ratio=0.6, bound=4.0)
GOOD = Observation(ratio=2.0, bound=4.0)
FAILED = Observation(ratio=1.0, bound=1.3, failed_ratio=1.0)


def run(
    state: BreakerState, seen: Observation | None, rounds: int, start: int = 0
) -> tuple[BreakerState, int]:
    """Advance until the phase changes or `rounds` are over; (state, next round)."""
    phase, at = state.phase, start
    while at < start + rounds and state.phase is phase:
        at += 1
        state = advance(state, seen, SETTINGS, at)
    return state, at


def opened() -> tuple[BreakerState, int]:
    state, at = run(CLOSED, WRONG, 1000)
    assert state.phase is Phase.OPEN
    return state, at


def half_opened() -> tuple[BreakerState, int]:
    state, at = run(*_swap(opened(), None))
    assert state.phase is Phase.HALF_OPEN
    return state, at


def _swap(
    pair: tuple[BreakerState, int], seen: Observation | None
) -> tuple[BreakerState, Observation | None, int, int]:
    return pair[0], seen, 10_000, pair[1]


def test_opens_when_every_round_is_a_loss() -> None:
    _, at = opened()
    assert at <= 200


def test_a_dip_does_not_open_it() -> None:
    state = CLOSED
    for at in range(1, 2001):  # ten losses in a row, then ten rounds that more than pay
        state = advance(state, WRONG if at // 10 % 2 else GOOD, SETTINGS, at)
        assert state.phase is Phase.CLOSED


def test_a_loss_below_the_margin_does_not_open_it() -> None:
    state, _ = run(CLOSED, Observation(ratio=0.985, bound=2.0), 5000)
    assert state.phase is Phase.CLOSED


@pytest.mark.parametrize("before", [0, 10, 1000])
def test_fewer_than_twenty_failures_in_a_row_open_it(before: int) -> None:
    state, at = run(CLOSED, GOOD, before)
    state, opened_at = run(state, FAILED, 1000, at)
    assert state.phase is Phase.OPEN
    assert opened_at - at < 20


def test_rare_failures_do_not_open_it() -> None:
    state = CLOSED
    for at in range(1, 5001):
        state = advance(state, FAILED if at % 30 == 0 else GOOD, SETTINGS, at)
    assert state.phase is Phase.CLOSED


def test_waits_then_tries_again() -> None:
    state, at = opened()
    assert state.next_probe_round == at + SETTINGS.first_wait_rounds
    assert advance(state, None, SETTINGS, state.next_probe_round - 1).phase is Phase.OPEN
    assert advance(state, None, SETTINGS, state.next_probe_round).phase is Phase.HALF_OPEN


def test_closes_when_the_probes_pay() -> None:
    state, at = half_opened()
    state, closed_at = run(state, GOOD, 100, at)
    assert state.phase is Phase.CLOSED
    assert closed_at - at <= SETTINGS.probe_rounds
    assert state.e_value == pytest.approx(1.0)


def test_plain_rounds_are_no_probes() -> None:
    state, at = half_opened()
    after, _ = run(state, None, 500, at)
    assert after == state


@pytest.mark.parametrize("seen", [WRONG, FAILED])
def test_waits_double_up_to_the_limit_while_probes_do_not_pay(seen: Observation) -> None:
    state, at = opened()
    waits = []
    for _ in range(9):
        waits.append(state.wait_rounds)
        state, at = run(state, None, 10_000, at)
        state, at = run(state, seen, 100, at)
        assert state.phase is Phase.OPEN
    assert waits == [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]


def test_the_wait_starts_small_again_after_it_held_closed_for_long() -> None:
    state, at = half_opened()
    state, at = run(state, GOOD, 100, at)
    soon, _ = run(state, WRONG, 1000, at)
    late_state, at = run(state, GOOD, 500, at)
    late, _ = run(late_state, WRONG, 3000, at)
    assert (soon.phase, late.phase) == (Phase.OPEN, Phase.OPEN)
    assert late.wait_rounds == SETTINGS.first_wait_rounds


def test_flapping_backs_off() -> None:
    state, at = half_opened()
    state, at = run(state, GOOD, 100, at)
    again, _ = run(state, FAILED, 1000, at)
    assert again.wait_rounds == 2 * SETTINGS.first_wait_rounds


def test_disabled_stays_closed() -> None:
    state = CLOSED
    for at in range(1, 500):
        state = advance(state, WRONG, BreakerSettings(enabled=False), at)
    assert state == CLOSED


def test_every_phase_has_a_sentence_and_the_state_is_readable() -> None:
    assert all(phase.sentence.endswith(".") for phase in Phase)
    state, at = opened()
    told = state.to_dict()
    assert told["phase"] == "open"
    assert told["next_probe_round"] == at + 64
    assert float(str(told["e_value"])) >= 100.0


def test_a_trial_asks_a_share_of_rows_and_other_ones_each_time() -> None:
    rows = list(range(100, 132))
    trials = [probing_rows(rows, epoch, 0.25) for epoch in range(40)]
    assert all(len(trial) == 8 for trial in trials)
    assert trials[3] == probing_rows(list(reversed(rows)), 3, 0.25)
    assert frozenset().union(*trials) == frozenset(rows)
    assert probing_rows([7], 1, 0.01) == frozenset([7])
    assert probing_rows([], 1, 0.25) == frozenset()
