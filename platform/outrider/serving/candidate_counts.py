"""What came of the candidates since the gateway began: the book forgets each when another comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from outrider.serving.sample import Likeness

OF_LIKENESS = {Likeness.MISMATCH: "num_mismatches", Likeness.NEAR_TIE: "num_near_ties"}
NAMES = (
    "num_shadows_dropped",
    "num_over_limit",
    "num_compared",
    "num_mismatches",
    "num_near_ties",
)


class CandidateCounts:
    """Counts by release."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def begin(self, release: str) -> None:
        """It is tried: nothing has come of it yet, where it is tried for the first time."""
        self._counts.setdefault(release, Counter())

    def drop(self, release: str) -> None:
        self._count(release, "num_shadows_dropped")

    def limit(self, release: str) -> None:
        self._count(release, "num_over_limit")

    def compare(self, release: str, likeness: Likeness) -> None:
        if likeness is not Likeness.UNCOMPARED:
            self._count(release, "num_compared")
            if likeness in OF_LIKENESS:
                self._count(release, OF_LIKENESS[likeness])

    @property
    def told(self) -> Mapping[str, Mapping[str, int]]:
        """By release: every one of NAMES."""
        return {
            release: {name: counts[name] for name in NAMES}
            for release, counts in self._counts.items()
        }

    def _count(self, release: str, name: str) -> None:
        self.begin(release)
        self._counts[release][name] += 1
