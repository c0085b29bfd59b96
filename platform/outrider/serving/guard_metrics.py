"""Where the guards of the releases stand, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client.metrics_core import Metric

from outrider.serving.families import counter_of, gauge_of
from outrider.serving.guard_state import Phase
from outrider.telemetry.live_meters import GUARD_TRANSITIONS
from outrider.telemetry.meters import GUARD_PHASE


class GuardMetrics:
    """Of what `Watch.told` tells at each look."""

    def __init__(self, told: Callable[[], Mapping[str, Any]]) -> None:
        self._told = told

    def collect(self) -> Iterator[Metric]:
        phases = gauge_of(GUARD_PHASE, "release", "phase")
        moves = counter_of(GUARD_TRANSITIONS, "release", "phase")
        for release, told in sorted(self._told().items()):
            for phase in Phase:
                phases.add_metric([release, phase.value], float(told["phase"] == phase.value))
                moves.add_metric([release, phase.value], told["transitions"][phase.value])
        yield phases
        yield moves
