"""Bounds of a difference that hold at every look."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outrider.rollout.sequential import START, Array, Gap, Stream, evidence, gap, radius


def stream(num: float, mean: float, variance: float) -> Stream:
    return Stream(np.asarray(num), np.asarray(mean), np.asarray(variance))


@pytest.mark.parametrize("u", [0.1, 1.0, 30.0])
def test_the_evidence_is_worth_one_where_there_is_no_difference(u: float) -> None:
    """Its mean over z ~ N(0, 1), by summing: what a bet that is fair returns."""
    z = np.linspace(-12.0, 6.0 * np.sqrt(1 + u), 200_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    worth = float(np.sum(evidence(z, np.asarray(u), 1.0) * density) * (z[1] - z[0]))
    assert worth == pytest.approx(1.0, abs=1e-3)


@given(st.floats(1e-4, 0.1), st.floats(1e3, 1e5), st.floats(0.02, 0.3), st.floats(0.01, 2.0))
def test_the_radius_is_where_the_evidence_reaches_one_over_alpha(
    alpha: float, information: float, scale: float, spread: float
) -> None:
    num = 2 * spread**2 * information  # of each arm; so many that a Student t is a normal z
    seen = gap(stream(num * 1e6, 0.0, spread**2 * 1e6), stream(num * 1e6, 0.0, spread**2 * 1e6))
    z = radius(seen, scale, alpha) * np.sqrt(seen.information)
    told = float(evidence(z, seen.information, scale))
    assert 0.999 / alpha <= told <= 1.05 / alpha


def test_few_requests_are_trusted_less_than_their_spread_alone_would_be() -> None:
    few = gap(stream(20, 0.0, 1.0), stream(20, 0.0, 1.0))
    many = gap(stream(20_000, 0.0, 1000.0), stream(20_000, 0.0, 1000.0))
    assert few.variance == pytest.approx(many.variance)
    assert radius(few, 0.1, 0.01) > 1.1 * radius(many, 0.1, 0.01)


def test_unequal_arms_know_what_the_smaller_one_knows() -> None:
    """However much stable's arm grows, the candidate's own requests bound what is known."""
    even = radius(gap(stream(100, 0.0, 1.0), stream(100, 0.0, 1.0)), 0.1, 0.05)
    tall = radius(gap(stream(100, 0.0, 1.0), stream(10_000, 0.0, 1.0)), 0.1, 0.05)
    assert even / 2 < tall < even


def test_a_factor_is_as_if_stables_figures_had_been_multiplied_by_it() -> None:
    halved = gap(stream(50, 1.0, 4.0), stream(80, 1.2, 9.0), 0.5)
    assert halved == gap(stream(50, 1.0, 4.0), stream(80, 0.6, 2.25))


def drawn(rng: np.random.Generator, shape: str, num: int) -> Array:
    """[rollouts, requests] of one arm, with mean 0 or the same mean in both arms."""
    if shape == "student":
        return np.asarray(rng.standard_t(3, (2000, num)))
    noise = rng.standard_normal((2000, num))
    late = rng.random((2000, num)) < (0.02 if shape == "hiccups" else 0.0)
    return np.asarray(noise + np.log(10) / 0.5 * late)


def so_far(values: Array, at: NDArray[np.int64]) -> Stream:
    """[rollouts, looks] of the first `at` requests."""
    total, square = (np.cumsum(values**power, axis=1)[:, at - 1] for power in (1, 2))
    mean = total / at
    return Stream(np.asarray(at, np.float64), mean, (square - at * mean**2) / (at - 1))


def ever_crossed(ours: Array, theirs: Array, reach: Callable[[Gap], Array]) -> float:
    """Share of the rollouts in which stable surely looked better at one of 90 looks."""
    at = np.arange(START, ours.shape[1], 2)
    seen = gap(so_far(ours, at), so_far(theirs, 4 * at))
    return float((seen.difference + reach(seen) < 0).any(axis=1).mean())


@pytest.mark.parametrize("shape", ["normal", "student", "hiccups"])
def test_requests_drawn_one_by_one_and_looked_at_from_the_start_seldom_alarm(shape: str) -> None:
    """The candidate, a fifth of the requests, is no worse; looks begin at the first that counts."""
    rng, alpha = np.random.default_rng(5), 0.02
    ours, theirs = drawn(rng, shape, 200), drawn(rng, shape, 800)
    assert ever_crossed(ours, theirs, lambda seen: radius(seen, 0.1, alpha)) < alpha


def test_a_bound_for_a_single_look_would_alarm_far_too_often_at_many() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = drawn(rng, "normal", 200), drawn(rng, "normal", 800)
    assert ever_crossed(ours, theirs, lambda seen: 2.05 * np.sqrt(seen.variance)) > 3 * 0.02
