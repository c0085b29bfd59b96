"""Bounds of a share that hold at every look."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.rollout.shares import highest, lowest, of_each


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_seen_lies_between_its_bounds(seen: tuple[int, int]) -> None:
    num_failed, num = seen
    share = num_failed / num
    assert 0.0 <= lowest(num_failed, num, 0.01) <= share <= highest(num_failed, num, 0.01) <= 1.0


@given(st.integers(0, 200), st.integers(200, 2000))
def test_bounds_are_wider_where_less_error_is_allowed(num_failed: int, num: int) -> None:
    assert lowest(num_failed, num, 0.001) <= lowest(num_failed, num, 0.05)
    assert highest(num_failed, num, 0.001) >= highest(num_failed, num, 0.05)


def test_nothing_seen_says_nothing() -> None:
    assert (lowest(0, 0, 0.01), highest(0, 0, 0.01)) == (0.0, 1.0)


def test_three_requests_of_which_one_failed_say_next_to_nothing() -> None:
    assert lowest(1, 3, 0.05) < 0.01
    assert highest(1, 3, 0.05) > 0.8


def test_no_failure_among_many_shows_that_failures_are_few() -> None:
    assert highest(0, 100, 0.025) > 0.02
    assert highest(0, 300, 0.025) < 0.02


@pytest.mark.parametrize("share", [0.002, 0.05, 0.4])
def test_the_true_share_is_seldom_ever_outside(share: float) -> None:
    rng, alpha, looks = np.random.default_rng(3), 0.05, 200
    failures = np.cumsum(rng.random((400, looks)) < share, axis=1, dtype=np.int64)
    above = of_each(lowest, failures, np.arange(1, looks + 1), alpha) > share
    below = of_each(highest, failures, np.arange(1, looks + 1), alpha) < share
    assert above.any(axis=1).sum() <= 400 * alpha
    assert below.any(axis=1).sum() <= 400 * alpha
