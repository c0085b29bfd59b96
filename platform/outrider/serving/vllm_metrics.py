"""What the replicas tell under the names of vLLM's speculative counters, so that dashboards made
for it show something true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from outrider.serving.messages import ReplicaStats

COUNTS = {
    "vllm:spec_decode_num_drafts": ("num_draft_rounds", "As vLLM: drafts."),
    "vllm:spec_decode_num_draft_tokens": ("drafted", "As vLLM: drafted tokens."),
    "vllm:spec_decode_num_accepted_tokens": ("accepted", "As vLLM: accepted tokens."),
    "vllm:generation_tokens": ("emitted", "As vLLM: generated tokens."),
}
GAUGES = {
    "vllm:num_requests_running": ("num_running", "As vLLM: requests that are decoded."),
    "vllm:num_requests_waiting": ("num_waiting", "As vLLM: requests that wait."),
}
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos"
WHERE = ("model_name", "engine")


class VllmMetrics:
    """Of one look at the replicas of a model."""

    def __init__(self, stats: Sequence[ReplicaStats], model: str) -> None:
        self._stats = stats
        self._counted = [each for each in stats if each.has_counted]
        self._model = model

    def collect(self) -> Iterator[Metric]:
        for shown, (name, help_) in COUNTS.items():
            counter = CounterMetricFamily(shown, help_, labels=WHERE)
            for each in self._counted:
                counter.add_metric([self._model, each.replica], getattr(each.counters, name))
            yield counter
        for shown, (name, help_) in GAUGES.items():
            gauge = GaugeMetricFamily(shown, help_, labels=WHERE)
            for each in self._stats:
                gauge.add_metric([self._model, each.replica], getattr(each, name))
            yield gauge
        yield self._per_position()

    def _per_position(self) -> Metric:
        family = CounterMetricFamily(PER_POSITION, "As vLLM.", labels=(*WHERE, "position"))
        for each in self._counted:
            for position, accepted in enumerate(each.counters.position_accepts):
                family.add_metric([self._model, each.replica, str(position)], accepted)
        return family
