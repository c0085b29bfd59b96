"""Requests of many simulated rollouts, drawn as the sums that a look sees.

Sums of normal variables need not be drawn one by one: a batch's total is normal, its sum of squares
about the mean is a chi-square, and both are independent. So the streams are exactly those of single
requests, looked at batch by batch.
"""

from __future__ import annotations

import math

import numpy as np

from outrider.rollout.effect import Traffic
from outrider.rollout.figures import ACCEPTANCE
from outrider.rollout.sequential import Array, Stream
from outrider.telemetry import meters

_ROUNDS_SPREAD = 0.25  # of the logarithm of tokens per round
_ACCEPTANCE, _ACCEPTANCE_SPREAD = 0.6, 0.2


def draw_streams(
    rng: np.random.Generator, shape: tuple[int, int], batch: int, traffic: Traffic
) -> dict[str, Stream]:
    """By figure, a stable arm's: [rollouts, looks], `batch` requests more at each look.

    Speed, time from token to token and to the whole answer follow from one pace, so they are wrong
    together, as in life.
    """
    spread = math.sqrt(math.log1p(traffic.variation**2))
    pace = _with_hiccups(rng, shape, batch, spread, traffic)
    rounds = _group(rng, np.full(shape, batch), _ROUNDS_SPREAD)
    total, square = _group(rng, np.full(shape, batch), _ACCEPTANCE_SPREAD)
    shifted = (total + batch * _ACCEPTANCE, _shift(total, square, batch, _ACCEPTANCE))
    return {
        meters.TOKENS_PER_S.name: _stream(-pace[0], pace[1], batch),
        meters.INTER_TOKEN_S.name: _stream(*pace, batch),
        meters.TOTAL_S.name: _stream(*pace, batch),
        meters.FIRST_TOKEN_S.name: _stream(
            *_with_hiccups(rng, shape, batch, spread, traffic), batch
        ),
        meters.TOKENS_PER_ROUND.name: _stream(*rounds, batch),
        ACCEPTANCE: _stream(*shifted, batch),
    }


def draw_failures(
    rng: np.random.Generator, shape: tuple[int, int], batch: int, share: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """[rollouts, looks] failed requests so far."""
    return np.cumsum(rng.binomial(batch, share, size=shape), axis=1)


def _with_hiccups(
    rng: np.random.Generator, shape: tuple[int, int], batch: int, spread: float, traffic: Traffic
) -> tuple[Array, Array]:
    slow = rng.binomial(batch, traffic.hiccup_share, size=shape)
    total, square = _group(rng, batch - slow, spread)
    late, late_square = _group(rng, slow, spread)
    shift = math.log(traffic.hiccup)
    return total + late + shift * slow, square + _shift(late, late_square, slow, shift)


def _group(
    rng: np.random.Generator, num: np.ndarray[tuple[int, ...], np.dtype[np.int64]], spread: float
) -> tuple[Array, Array]:
    """Total and sum of squares of `num` normal values around 0, for each place."""
    total = rng.standard_normal(num.shape) * np.sqrt(num) * spread
    degrees = np.maximum(num - 1, 1)
    about = np.where(num > 1, rng.chisquare(degrees), 0.0) * spread**2
    return total, about + total**2 / np.maximum(num, 1)


def _shift(
    total: Array,
    square: Array,
    num: int | np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    by: float,
) -> Array:
    """The sum of squares of the same values, each `by` more."""
    return np.asarray(square + 2.0 * by * total + num * by**2)


def _stream(total: Array, square: Array, batch: int) -> Stream:
    """Running sums over the looks. One request has no spread yet: it counts as none."""
    num = batch * np.arange(1, total.shape[1] + 1, dtype=np.float64)
    mean = np.cumsum(total, axis=1) / num
    about = np.maximum(np.cumsum(square, axis=1) - num * mean**2, 0.0)
    return Stream(num, mean, about / np.maximum(num - 1, 1.0))
