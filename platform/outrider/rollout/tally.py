"""What is kept of the requests of one side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outrider.rollout.figures import figures_of, scaled
from outrider.rollout.histogram import Histogram
from outrider.rollout.moments import Moments
from outrider.serving.sample import Sample

NO_MOMENTS = Moments()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Tallies add up. A request that failed is counted and tells no other figure."""

    num_requests: int = 0
    num_failed: int = 0
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)  # by figure
    histograms: Mapping[str, Histogram] = field(default_factory=dict)  # by figure

    @staticmethod
    def of(samples: Sequence[Sample]) -> Tally:
        served = [sample for sample in samples if not sample.error]
        values = _columns(figures_of(sample) for sample in served)
        return Tally(
            num_requests=len(samples),
            num_failed=len(samples) - len(served),
            finish_reasons=dict(Counter(sample.finish_reason for sample in samples)),
            moments={
                name: Moments.of(scaled(name, value) for value in column)
                for name, column in values.items()
            },
            histograms={name: Histogram.of(column) for name, column in values.items()},
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            num_requests=self.num_requests + other.num_requests,
            num_failed=self.num_failed + other.num_failed,
            finish_reasons=_added(self.finish_reasons, other.finish_reasons, 0),
            moments=_added(self.moments, other.moments, NO_MOMENTS),
            histograms=_added(self.histograms, other.histograms, Histogram()),
        )

    @property
    def num_served(self) -> int:
        return self.num_requests - self.num_failed

    def moments_of(self, figure: str) -> Moments:
        return self.moments.get(figure, NO_MOMENTS)

    def without_shapes(self) -> Tally:
        """Only what is tested: small enough to be kept for each kind of request."""
        return Tally(
            num_requests=self.num_requests, num_failed=self.num_failed, moments=self.moments
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "num_requests": self.num_requests,
            "num_failed": self.num_failed,
            "finish_reasons": dict(self.finish_reasons),
            "moments": {
                name: [one.num, one.total, one.square] for name, one in self.moments.items()
            },
            "histograms": {name: one.to_list() for name, one in self.histograms.items()},
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Tally:
        return Tally(
            num_requests=data["num_requests"],
            num_failed=data["num_failed"],
            finish_reasons=dict(data["finish_reasons"]),
            moments={name: Moments(*one) for name, one in data["moments"].items()},
            histograms={name: Histogram.from_list(one) for name, one in data["histograms"].items()},
        )


def _columns(rows: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _added(mine: Mapping[str, Any], theirs: Mapping[str, Any], zero: Any) -> dict[str, Any]:
    """By name; what only one of them has is added to zero."""
    names = [*mine, *(name for name in theirs if name not in mine)]
    return {name: mine.get(name, zero) + theirs.get(name, zero) for name in names}
