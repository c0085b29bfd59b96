"""Waits before a retry: they grow, stay bounded and never pass the deadline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.serving.retry import HELD_S, MOST_HELD, MOST_S, MOST_WAIT_S, Patience


@given(st.floats(0.1, 1000), st.floats(0, 1e6))
def test_waits_grow_and_end_before_the_deadline(deadline_s: float, now: float) -> None:
    patience, start = Patience.of(deadline_s, now), now
    waits: list[float] = []
    while (wait := patience.lost(now)) is not None:
        waits.append(wait)
        now += wait
        assert now - start <= min(deadline_s, MOST_S) + 1e-6
    assert waits == sorted(waits)
    assert all(0 < wait <= MOST_WAIT_S for wait in waits)


def test_a_call_that_was_long_under_way_is_tried_again_from_the_beginning() -> None:
    patience = Patience.of(600.0, 0.0)
    lost_at = 4 * MOST_S
    waits = [patience.lost(lost_at) for _ in range(3)]
    assert waits == [0.1, 0.2, 0.4]


def test_a_call_that_kills_whoever_takes_it_is_given_up() -> None:
    patience, now = Patience.of(600.0, 0.0), 0.0
    num_tries = 1
    while (wait := patience.lost(now := now + 2 * HELD_S)) is not None:
        now += wait
        num_tries += 1
    assert num_tries == MOST_HELD
