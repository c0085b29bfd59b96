"""Intervals of what was measured, by resampling it (Efron and Tibshirani 1993). Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NUM_RESAMPLES = 2000


def resamples(size: int) -> NDArray[np.int64]:
    """Indices [resamples, size] into `size` samples, drawn with replacement; always the same."""
    return np.random.default_rng(0).integers(0, size, size=(_NUM_RESAMPLES, size))


def interval(values: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a statistic, from its value in each resample: percentiles of these."""
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
