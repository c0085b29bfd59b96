"""Waits before a retry: they grow, stay bounded and never pass the deadline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.serving.retry import MOST_S, MOST_WAIT_S, Patience


@given(st.floats(0.1, 1000), st.floats(0, 1e6))
def test_waits_grow_and_end_before_the_deadline(deadline_s: float, now: float) -> None:
    patience, start = Patience.of(deadline_s, now), now
    waits: list[float] = []
    while (wait := patience.wait_s(len(waits), now)) is not None:
        waits.append(wait)
        now += wait
        assert now - start <= min(deadline_s, MOST_S) + 1e-6
    assert waits == sorted(waits)
    assert all(0 < wait <= MOST_WAIT_S for wait in waits)
