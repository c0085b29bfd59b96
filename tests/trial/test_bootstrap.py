"""Intervals against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from outrider.trial.bootstrap import ratio_of_quantiles, ratio_of_rates

RNG = np.random.default_rng(3)


def test_a_ratio_of_rates_is_one_of_sums_and_its_interval_the_analytic_one() -> None:
    """With equal seconds for theirs, the ratio is a mean: its standard error is known."""
    num = 400
    tokens = RNG.normal(100, 20, size=num)
    ours = np.column_stack([tokens, np.ones(num)])
    theirs = np.column_stack([np.full(num, 50.0), np.ones(num)])
    found = ratio_of_rates(ours, theirs, 0.95)
    assert found is not None
    error = tokens.std() / np.sqrt(num) / 50
    assert found.value == pytest.approx(tokens.mean() / 50)
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.2 * error)
    assert found.num_pairs == num


def test_what_both_sides_share_does_not_widen_the_interval() -> None:
    seconds = RNG.uniform(1, 30, size=40)  # prompts of very different length
    ours = np.column_stack([np.full(40, 90.0), seconds])
    theirs = np.column_stack([np.full(40, 60.0), seconds])
    found = ratio_of_rates(ours, theirs, 0.95)
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_more_confidence_is_a_wider_interval_around_the_narrower() -> None:
    ours = np.column_stack([RNG.uniform(50, 150, size=20), np.ones(20)])
    theirs = np.column_stack([RNG.uniform(50, 150, size=20), np.ones(20)])
    narrow, wide = (ratio_of_rates(ours, theirs, level) for level in (0.5, 0.99))
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low <= narrow.value <= narrow.high < wide.high


def test_a_quantile_that_is_twice_theirs_in_every_pair_is_twice_surely() -> None:
    theirs = RNG.uniform(0.1, 2.0, size=60)
    found = ratio_of_quantiles(2 * theirs[:, None], theirs[:, None], 0.95, 0.95)
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))


@pytest.mark.parametrize(("quantile", "value"), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)])
def test_a_quantile_lies_between_the_two_nearest_of_what_there_is(
    quantile: float, value: float
) -> None:
    found = ratio_of_quantiles(np.array([[2.0, np.nan, 4.0, 1.0]]), np.ones((1, 4)), quantile, 0.95)
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((value,) * 3)


def test_repeats_of_a_prompt_make_no_interval_narrower() -> None:
    ours, theirs = RNG.uniform(0.5, 2.0, size=(2, 12, 1))
    once = ratio_of_quantiles(ours, theirs, 0.5, 0.95)
    often = ratio_of_quantiles(ours.repeat(5, axis=1), theirs.repeat(5, axis=1), 0.5, 0.95)
    assert once is not None
    assert often is not None
    assert often.num_pairs == 12
    assert often.high - often.low > 0.9 * (once.high - once.low)
    gaps = np.full((12, 2), np.nan)
    padded = [np.hstack([side, gaps]) for side in (ours, theirs)]
    assert ratio_of_quantiles(padded[0], padded[1], 0.5, 0.95) == once


def test_no_pairs_or_no_tokens_have_no_ratio() -> None:
    none, zero = np.zeros((0, 2)), np.array([[0.0, 1.0]])
    assert ratio_of_rates(none, none, 0.95) is None
    assert ratio_of_rates(zero, zero, 0.95) is None
    assert ratio_of_quantiles(none, none, 0.95, 0.95) is None
