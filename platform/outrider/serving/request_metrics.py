"""Requests as they end, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

from outrider.serving.request_entry import RequestEntry
from outrider.telemetry import meters
from outrider.telemetry.live_meters import NUM_RETRIES
from outrider.telemetry.meter import Meter

SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
WHERE = ("release", "arm", "mode")  # the mode that the request was decoded in


class RequestMetrics:
    """Counted since the gateway began."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._queue = self._histogram(meters.QUEUE_S)
        self._first = self._histogram(meters.FIRST_TOKEN_S)
        self._rest = self._histogram(meters.INTER_TOKEN_S)
        self._total = self._histogram(meters.TOTAL_S)
        ended_as = ("release", "arm", "status", "error")  # status 499: the client left
        self._requests = self._counter(meters.NUM_REQUESTS, *ended_as)
        self._retries = self._counter(NUM_RETRIES, "release", "arm")
        self._served = {name: self._counter(meter, *WHERE) for name, meter in meters.SERVED.items()}

    def see(self, entry: RequestEntry) -> None:
        """A request has ended."""
        self._requests.labels(entry.release, entry.arm, entry.status, entry.error).inc()
        if entry.num_retries:
            self._retries.labels(entry.release, entry.arm).inc(entry.num_retries)
        where = (entry.release, entry.arm, entry.mode)
        if entry.first_token_s is None or not entry.num_completion_tokens:
            return
        for name, counter in self._served.items():
            counter.labels(*where).inc(getattr(entry, name))
        if entry.queue_s is not None:
            self._queue.labels(*where).observe(entry.queue_s)
        self._first.labels(*where).observe(entry.first_token_s)
        self._total.labels(*where).observe(entry.total_s)
        if entry.stream and entry.num_completion_tokens > 1:
            rest_s = entry.total_s - entry.first_token_s
            self._rest.labels(*where).observe(rest_s / (entry.num_completion_tokens - 1))

    def collect(self) -> Iterator[Metric]:
        """Without the client library's own `_created`: nobody asks when a counter was born."""
        for family in self._registry.collect():
            samples = family.samples
            family.samples = [each for each in samples if not each.name.endswith("_created")]
            yield family

    def _counter(self, meter: Meter, *labels: str) -> Counter:
        return Counter(meter.shown, meter.help, labels, registry=self._registry)

    def _histogram(self, meter: Meter) -> Histogram:
        return Histogram(meter.shown, meter.help, WHERE, registry=self._registry, buckets=SECONDS)
