"""Where the guards of the releases stand, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from outrider.serving.guard_state import Phase


class GuardMetrics:
    """Of what `Watch.told` tells."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily(
            "outrider_guard_phase",
            "1 for the phase that a release's guard is in (open: all replicas decode plainly).",
            labels=("release", "phase"),
        )
        moves = CounterMetricFamily(
            "outrider_guard_transitions",
            "Changes of a release's guard to a phase, since the gateway began.",
            labels=("release", "phase"),
        )
        for release, told in sorted(self._told.items()):
            for phase in Phase:
                phases.add_metric([release, phase.value], float(told["phase"] == phase.value))
                moves.add_metric([release, phase.value], told["transitions"][phase.value])
        yield phases
        yield moves
