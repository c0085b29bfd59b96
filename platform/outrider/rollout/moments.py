"""Count, sum and sum of squares: all that a test of a mean needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moments:
    """Of a figure as `outrider.rollout.figures` tells it; they add up."""

    num: int = 0
    total: float = 0.0
    square: float = 0.0

    @staticmethod
    def of(values: Iterable[float]) -> Moments:
        seen = list(values)
        return Moments(len(seen), sum(seen), sum(value * value for value in seen))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.num + other.num, self.total + other.total, self.square + other.square)

    @property
    def mean(self) -> float:
        return self.total / self.num if self.num else 0.0

    @property
    def variance(self) -> float:
        """Unbiased; 0 of fewer than two."""
        if self.num < 2:  # noqa: PLR2004 - a spread needs two
            return 0.0
        return max(self.square - self.num * self.mean**2, 0.0) / (self.num - 1)
