"""The page /metrics, in Prometheus' text format: what replicas tell, what the gateway saw, and what
its additions know. Names and meanings are the catalogue's (`telemetry.meters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from outrider.serving.engine_metrics import EngineMetrics
from outrider.serving.messages import ReplicaStats
from outrider.serving.request_entry import RequestEntry
from outrider.serving.request_metrics import RequestMetrics
from outrider.serving.vllm_metrics import VllmMetrics


class MetricsPage:
    """Counts requests as they end; asks for the rest when it is shown."""

    def __init__(self, model: str, others: Sequence[Collector] = ()) -> None:
        """`others`: whoever has families of its own, at each look."""
        self._model = model
        self._requests = RequestMetrics()
        self._others = tuple(others)

    def see(self, entry: RequestEntry) -> None:
        """A request has ended."""
        self._requests.see(entry)

    def render(self, stats: Iterable[ReplicaStats]) -> bytes:
        told = list(stats)
        shown = CollectorRegistry()
        ours: list[Collector] = [EngineMetrics(told), VllmMetrics(told, self._model)]
        for each in (*ours, *self._others, self._requests):
            shown.register(each)
        return generate_latest(shown)
