"""Intervals of what was measured, by resampling it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NUM_RESAMPLES = 2000


def resamples(size: int) -> NDArray[np.int64]:
    """Indices [resamples, size] into `size` samples, drawn with replacement; always the same."""
    return np.random.default_rng(0).integers(0, size, size=(_NUM_RESAMPLES, size))


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of a statistic, from its value in each resample."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
