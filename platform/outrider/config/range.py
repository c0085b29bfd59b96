"""Intervals in which a setting must lie."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """An interval in which a number must lie; `None` is unbounded. NaN lies in none."""

    low: float | None = None
    high: float | None = None
    is_open_low: bool = False

    def __contains__(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self.low is not None and (value < self.low or (self.is_open_low and value == self.low)):
            return False
        return self.high is None or value <= self.high

    def __str__(self) -> str:
        low = (
            ""
            if self.low is None
            else f"{'above' if self.is_open_low else 'at least'} {self.low:g}"
        )
        high = "" if self.high is None else f"at most {self.high:g}"
        return " and ".join(part for part in (low, high) if part)


COUNT = Range(low=0)
POSITIVE_COUNT = Range(low=1)
POSITIVE = Range(low=0, is_open_low=True)
SHARE = Range(low=0, high=1)
POSITIVE_SHARE = Range(low=0, high=1, is_open_low=True)
PORT = Range(low=1, high=65535)
