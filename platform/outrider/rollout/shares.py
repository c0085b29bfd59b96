"""Bounds of a share that hold at every look, exact for any number of requests. Pure.

With k failures among n, M(p) = B(a + k, b + n - k) / B(a, b) / (p^k (1 - p)^(n - k)) is a
martingale with mean 1 where p is the true share (a mixture over Beta(a, b): Robbins 1970; Howard
et al. 2021, "beta-binomial mixture"). All p with M(p) < 1/alpha together hold the true one at every
look with probability 1 - alpha (Ville). There is nothing asymptotic about it: three requests with
one failure give a bound that is wide, and right.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Counts = int | NDArray[np.int64]

_SPREAD = (0.5, 0.5)  # a and b of a lower bound: any share may have to be noticed
_RARE = (0.5, 25.0)  # of an upper bound: few failures are to be shown to be few, early
_HALVINGS = 40  # of an interval: to 1e-12


def lowest(num_failed: int, num: int, alpha: float) -> float:
    """Ever above the true share with chance <= alpha."""
    if num_failed == 0:
        return 0.0
    return _edge(num_failed, num, alpha, _SPREAD, outside=0.0)


def highest(num_failed: int, num: int, alpha: float) -> float:
    """Ever below the true share with chance <= alpha."""
    if num_failed == num:
        return 1.0
    return _edge(num_failed, num, alpha, _RARE, outside=1.0)


def of_each(
    bound: Callable[[int, int, float], float], num_failed: Counts, num: Counts, alpha: float
) -> NDArray[np.float64]:
    """`bound` of every place, worked out once for all that have the same two counts."""
    pairs, places = np.unique(np.add(num_failed, np.multiply(num, 1j)), return_inverse=True)
    found = [bound(int(pair.real), int(pair.imag), alpha) for pair in pairs]
    return np.asarray(found)[places]


def _edge(
    num_failed: int, num: int, alpha: float, prior: tuple[float, float], *, outside: float
) -> float:
    """Where M reaches 1/alpha, between the share seen (M <= 1) and `outside`: log M is convex."""
    a, b = prior
    constant = _log_beta(a + num_failed, b + num - num_failed) - _log_beta(a, b)
    inside = num_failed / num
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if constant - _log_likelihood(num_failed, num, middle) < -math.log(alpha):
            inside = middle
        else:
            outside = middle
    return outside


def _log_likelihood(num_failed: int, num: int, share: float) -> float:
    told = num_failed * math.log(share) if num_failed else 0.0
    return told + ((num - num_failed) * math.log1p(-share) if num > num_failed else 0.0)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
