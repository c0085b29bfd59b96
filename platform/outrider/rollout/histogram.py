"""A distribution in a few numbers that can be added, so that percentiles can be shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

PER_OCTAVE = 8  # bins from a value to its double: a bin is 9 % wide
_LOWEST, _HIGHEST = -20 * PER_OCTAVE, 20 * PER_OCTAVE  # a millionth to a million


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by the logarithm of a value. What is 0 or below lies in the lowest bin."""

    counts: Mapping[int, int] = field(default_factory=dict)  # bin: values

    @staticmethod
    def of(values: Iterable[float]) -> Histogram:
        return Histogram(dict(Counter(map(_bin, values))))

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(dict(Counter(self.counts) + Counter(other.counts)))

    @property
    def num(self) -> int:
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """The value below which `share` of all lie, within a bin's width. None: no values."""
        below, wanted = 0, share * self.num
        for number in sorted(self.counts):
            inside = self.counts[number]
            if below + inside >= wanted:
                return _value(number, (wanted - below) / inside)
            below += inside
        return None

    def to_list(self) -> list[int]:
        """Flat pairs of bin and count: short as JSON."""
        return [number for pair in sorted(self.counts.items()) for number in pair]

    @staticmethod
    def from_list(flat: list[int]) -> Histogram:
        return Histogram(dict(zip(flat[::2], flat[1::2], strict=True)))


def _bin(value: float) -> int:
    if value <= 0.0:
        return _LOWEST
    return min(max(math.floor(PER_OCTAVE * math.log2(value)), _LOWEST), _HIGHEST)


def _value(number: int, share: float) -> float:
    """Inside a bin, `share` of the way through it."""
    if number == _LOWEST:
        return 0.0
    return float(2.0 ** ((number + share) / PER_OCTAVE))
