"""A guard falls on evidence only, waits, tries again, and comes back only where that pays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.config.schema import ServingSettings
from outrider.engine.draft_sums import DraftSums
from outrider.serving.guard_state import GuardState, Phase, Seen, advance, higher, lasting

SETTINGS = ServingSettings(
    fallback_min_acceptance=0.2,
    fallback_window_s=10.0,
    fallback_min_drafted=100,
    fallback_wait_s=30.0,
    fallback_max_wait_s=200.0,
)
NOTHING = Seen(drafts=DraftSums())


def seen(accepted: int, drafted: int = 100, *, goodput: float = 2.0, span_s: float = 9.0) -> Seen:
    """`drafted` tokens in ten blocks."""
    return Seen(drafts=DraftSums(drafted, accepted, 10, 10 * goodput), span_s=span_s)


def fallen(now_s: float = 100.0) -> GuardState:
    state = advance(GuardState(), seen(5), SETTINGS, now_s)
    assert state.phase is Phase.OPEN
    return state


def probing(now_s: float = 130.0) -> GuardState:
    state = advance(fallen(), NOTHING, SETTINGS, now_s)
    assert state.phase is Phase.PROBING
    return state


def test_falls_where_too_little_is_accepted_and_says_so() -> None:
    state = fallen()
    assert (state.since_s, state.wait_s) == (100.0, 30.0)
    assert "5 of 100 drafted tokens were accepted (5.0%)" in state.reason
    assert "at least 20.0%" in state.reason


def test_falls_where_drafting_costs_more_than_it_gives() -> None:
    state = advance(GuardState(), seen(90, goodput=0.8), SETTINGS, 100.0)
    assert state.phase is Phase.OPEN
    assert "0.80 times plain decoding's goodput" in state.reason
    off = replace(SETTINGS, fallback_min_goodput=0.0)
    assert advance(GuardState(), seen(90, goodput=0.8), off, 100.0) == GuardState()


def test_a_goodput_that_nobody_measured_is_no_evidence() -> None:
    unknown = Seen(drafts=DraftSums(100, 90), span_s=9.0)
    assert advance(GuardState(), unknown, SETTINGS, 100.0).phase is Phase.CLOSED


@pytest.mark.parametrize(
    "few", [NOTHING, seen(0, 99), seen(0, span_s=4.0), seen(20)], ids=["none", "few", "burst", "ok"]
)
def test_stays_where_the_evidence_is_too_little_or_good(few: Seen) -> None:
    assert advance(GuardState(), few, SETTINGS, 100.0) == GuardState()


def test_waits_then_probes() -> None:
    state = fallen()
    assert advance(state, seen(100), SETTINGS, 129.9) == state
    assert advance(state, NOTHING, SETTINGS, 130.0).phase is Phase.PROBING


def test_probes_must_do_better_than_what_it_fell_at() -> None:
    state = probing()
    assert advance(state, seen(25), SETTINGS, 140.0).phase is Phase.OPEN
    assert advance(state, seen(90, goodput=0.95), SETTINGS, 140.0).phase is Phase.OPEN
    back = advance(state, seen(31, span_s=0.0), SETTINGS, 140.0)
    assert (back.phase, back.since_s) == (Phase.CLOSED, 140.0)
    assert "probes: 31 of 100" in back.reason


def test_probes_that_drafted_too_little_say_nothing() -> None:
    state = probing()
    assert advance(state, seen(0, 99), SETTINGS, 1e6) == state


def test_waits_double_up_to_the_longest_while_probes_fail() -> None:
    state, now_s, waits = fallen(), 100.0, []
    for _ in range(6):
        waits.append(state.wait_s)
        now_s += state.wait_s
        state = advance(state, NOTHING, SETTINGS, now_s)
        state = advance(state, seen(0), SETTINGS, now_s)
    assert waits == [30.0, 60.0, 120.0, 200.0, 200.0, 200.0]


@pytest.mark.parametrize(("held_s", "wait_s"), [(199.0, 60.0), (200.0, 30.0)])
def test_a_fall_after_a_long_good_time_waits_as_the_first(held_s: float, wait_s: float) -> None:
    back = advance(probing(), seen(90), SETTINGS, 140.0)
    assert advance(back, seen(0), SETTINGS, 140.0 + held_s).wait_s == wait_s


def test_a_fall_lasts_where_probes_did_not_pay_either() -> None:
    assert lasting(fallen(), SETTINGS) == ""
    assert lasting(probing(), SETTINGS) == ""
    again = advance(probing(), seen(5), SETTINGS, 131.0)
    assert lasting(again, SETTINGS).startswith("probes: 5 of 100")


def test_the_higher_threshold_is_within_reach() -> None:
    for floor in (0.02, 0.1, 0.5, 0.9, 0.99):
        assert floor < higher(floor) < 1.0


def test_every_phase_has_a_sentence() -> None:
    assert all(phase.sentence.endswith(".") for phase in Phase)


LOOKS = st.lists(
    st.tuples(
        st.floats(0.1, 100.0),  # seconds since the last look
        st.integers(0, 300),  # drafted
        st.floats(0.0, 1.0),  # accepted of them
        st.floats(0.0, 3.0),  # goodput
        st.floats(0.0, 10.0),  # span
    ),
    max_size=60,
)


@given(LOOKS)
def test_it_never_flaps_faster_than_it_waits_and_comes_back_by_probes_only(
    looks: list[tuple[float, int, float, float, float]],
) -> None:
    state, now_s = GuardState(), 0.0
    last_fall_s, last_wait_s = -1e9, 0.0
    for step_s, drafted, share, goodput, span_s in looks:
        now_s += step_s
        look = seen(int(share * drafted), drafted, goodput=goodput, span_s=span_s)
        after = advance(state, look, SETTINGS, now_s)
        if after.phase is not state.phase:
            assert (state.phase, after.phase) in {
                (Phase.CLOSED, Phase.OPEN),
                (Phase.OPEN, Phase.PROBING),
                (Phase.PROBING, Phase.OPEN),
                (Phase.PROBING, Phase.CLOSED),
            }
            assert after.reason
        if after.phase is Phase.CLOSED and state.phase is Phase.PROBING:
            assert look.drafts.accepted >= higher(0.2) * drafted
            assert drafted >= SETTINGS.fallback_min_drafted
        if after.phase is Phase.OPEN and state.phase is not Phase.OPEN:
            assert drafted >= SETTINGS.fallback_min_drafted
            assert now_s - last_fall_s >= last_wait_s
            assert SETTINGS.fallback_wait_s <= after.wait_s <= SETTINGS.fallback_max_wait_s
            last_fall_s, last_wait_s = now_s, after.wait_s
        state = after


@given(st.lists(st.floats(0.1, 100.0), max_size=40), st.sampled_from(list(Phase)))
def test_no_data_never_opens_and_never_closes_it(steps: list[float], phase: Phase) -> None:
    state, now_s = GuardState(phase=phase, wait_s=30.0), 0.0
    for step_s in steps:
        now_s += step_s
        state = advance(state, NOTHING, SETTINGS, now_s)
        assert state.phase is phase or (phase, state.phase) == (Phase.OPEN, Phase.PROBING)
