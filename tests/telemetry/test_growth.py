"""Counters that only grow are told by what they grew by, whoever counts having restarted or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.core import Counters
from outrider.telemetry.growth import growth

COUNTS = st.integers(0, 1000)
POSITIONS = st.lists(COUNTS, max_size=5)


@st.composite
def counters(draw: st.DrawFn) -> Counters:
    numbers = {"drafted": draw(COUNTS), "emitted": draw(COUNTS), "active_s": float(draw(COUNTS))}
    return Counters(**numbers, position_accepts=draw(POSITIONS))


@given(st.lists(counters(), max_size=6))
def test_what_grew_adds_up_to_the_total(steps: list[Counters]) -> None:
    total, told = Counters(), Counters()
    for step in steps:
        before = growth(Counters(), total)
        total += step
        told += growth(before, total)
    assert told == total


def test_an_engine_that_began_anew_is_counted_from_zero() -> None:
    before = Counters(drafted=90, emitted=50, position_accepts=[9, 8])
    now = Counters(drafted=4, emitted=60, position_accepts=[1])
    assert growth(before, now) == now


def test_seconds_that_were_added_in_another_order_are_no_new_beginning() -> None:
    before = Counters(drafted=90, active_s=0.1 + 0.2 + 0.3)
    now = Counters(drafted=91, active_s=0.3 + 0.2 + 0.1)
    assert now.active_s < before.active_s
    assert growth(before, now).drafted == 1
