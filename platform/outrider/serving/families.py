"""Empty families of the page /metrics, by the catalogue's names and meanings."""

from __future__ import annotations

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from outrider.telemetry.meter import Meter


def counter_of(meter: Meter, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(meter.shown, meter.help, labels=labels)


def gauge_of(meter: Meter, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(meter.shown, meter.help, labels=labels)
