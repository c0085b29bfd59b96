"""Confidence intervals by paired bootstrap. Pure.

Pairs are kept together (Efron and Tibshirani 1993, chapter 8), so that what both sides of a pair
share, a prompt or a slow minute, does not widen the interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outrider.bench.bootstrap import interval, resamples
from outrider.trial.record import Ratio

Array = NDArray[np.float64]


def ratio_of_rates(ours: Array, theirs: Array, confidence: float) -> Ratio | None:
    """Tokens per second over tokens per second, each a ratio of sums.

    `ours`, `theirs`: [pairs, (tokens, seconds)]. None where there are no pairs or no tokens.
    """
    num_pairs = len(ours)
    if num_pairs == 0:
        return None
    picks = resamples(num_pairs)
    drawn = [side[picks].sum(axis=1).T for side in (ours, theirs)]  # [2, resamples] each
    value = float(_over(ours.sum(axis=0), theirs.sum(axis=0)))
    return _ratio(value, _over(*drawn), num_pairs, confidence)


def ratio_of_quantiles(
    ours: Array, theirs: Array, quantile: float, confidence: float
) -> Ratio | None:
    """A quantile over the same of the others'. `ours`, `theirs`: [prompts, repeats] seconds.

    Prompts are drawn with all their repeats: answers to one prompt are no news of others. NaN
    where a prompt came less often than others.
    """
    num_prompts = len(ours)
    if num_prompts == 0:
        return None
    picks = resamples(num_prompts)
    drawn = [_quantiles(side[picks].reshape(len(picks), -1), quantile) for side in (ours, theirs)]
    seen = [_quantiles(side.reshape(1, -1), quantile)[0] for side in (ours, theirs)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return _ratio(float(seen[0] / seen[1]), drawn[0] / drawn[1], num_prompts, confidence)


def _quantiles(rows: Array, quantile: float) -> Array:
    """Of each row, NaN left out, between the two nearest. [rows, values] -> [rows].

    What `np.nanquantile` says, which goes through thousands of rows one by one.
    """
    ordered = np.sort(rows, axis=1)  # NaN comes last
    last = np.maximum(np.count_nonzero(~np.isnan(rows), axis=1) - 1, 0)
    place = quantile * last
    low = np.floor(place).astype(np.intp)
    ends = np.stack([low, np.minimum(low + 1, last)], axis=1)
    below, above = np.take_along_axis(ordered, ends, axis=1).T
    return np.asarray(below + (above - below) * (place - low))


def _over(ours: Array, theirs: Array) -> Array:
    """[(tokens, seconds), ...] each -> ratio of the rates."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (ours[0] / ours[1]) / (theirs[0] / theirs[1])


def _ratio(value: float, drawn: Array, num_pairs: int, confidence: float) -> Ratio | None:
    """Draws without a meaning, for want of tokens, are left out."""
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or drawn.size == 0:
        return None
    low, high = interval(drawn, confidence)
    return Ratio(value=value, low=low, high=high, num_pairs=num_pairs)
