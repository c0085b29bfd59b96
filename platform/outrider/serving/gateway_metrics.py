"""What the gateway's desk knows, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from outrider.serving.desk import Desk
from outrider.serving.families import counter_of, gauge_of
from outrider.serving.split import Arm
from outrider.serving.trials import NAMES
from outrider.telemetry import live_meters as live
from outrider.telemetry.meters import METERS


class GatewayMetrics:
    """Calls, the split and what came of candidates."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterator[Metric]:
        for meter, value in (
            (live.NUM_CALLS, self._desk.num_calls),
            (live.MAX_CALLS, self._desk.most_calls),
        ):
            yield GaugeMetricFamily(meter.shown, meter.help, value=value)
        yield from self._split()
        yield from self._trials()

    def _split(self) -> Iterator[Metric]:
        weights = gauge_of(live.ARM_WEIGHT, "release", "arm")
        routed = counter_of(live.NUM_ROUTED, "release", "arm")
        total = {**dict.fromkeys(self._arms(), 0), **self._desk.shares.total}
        for (release, arm), weight in self._arms().items():
            weights.add_metric([release, arm.value], weight)
        for (release, arm), num in sorted(total.items()):
            routed.add_metric([release, arm.value], num)
        yield weights
        yield routed

    def _arms(self) -> dict[tuple[str, Arm], float]:
        """Weight by release and arm of the plan in force."""
        plan = self._desk.plan
        if plan.candidate is None:
            return {(plan.stable, Arm.STABLE): 1.0}
        return {
            (plan.stable, Arm.STABLE): 1.0 - plan.weight,
            (plan.candidate, Arm.CANDIDATE): plan.weight,
        }

    def _trials(self) -> Iterator[Metric]:
        told = sorted(self._desk.trials.told.items())
        for name in NAMES:
            family = counter_of(METERS[name], "release")
            for release, counts in told:
                family.add_metric([release], counts[name])
            yield family
