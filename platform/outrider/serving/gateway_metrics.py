"""What the gateway's desk knows, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from outrider.serving.candidate_counts import NAMES
from outrider.serving.desk import Desk
from outrider.serving.families import counter_of, gauge_of
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
        yield from self._candidates()

    def _split(self) -> Iterator[Metric]:
        weights = gauge_of(live.ARM_WEIGHT, "release", "arm")
        routed = counter_of(live.NUM_ROUTED, "release", "arm")
        arms = self._desk.plan.arms
        total = {**{(release, arm): 0 for arm, release, _ in arms}, **self._desk.shares.total}
        for arm, release, weight in arms:
            weights.add_metric([release, arm.value], weight)
        for (release, arm), num in sorted(total.items()):
            routed.add_metric([release, arm.value], num)
        yield weights
        yield routed

    def _candidates(self) -> Iterator[Metric]:
        told = sorted(self._desk.candidate_counts.told.items())
        for name in NAMES:
            family = counter_of(METERS[name], "release")
            for release, counts in told:
                family.add_metric([release], counts[name])
            yield family
