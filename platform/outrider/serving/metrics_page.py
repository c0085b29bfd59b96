"""The page /metrics: what replicas tell and what the gateway saw, in Prometheus' text format.

Names are ours (`outrider_...`), and beside them those of vLLM's speculative counters, so that
dashboards made for it show something true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from outrider.core import Counters
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.messages import ReplicaStats
from outrider.serving.request_entry import RequestEntry
from outrider.telemetry.meters import METER_OF

SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
WHERE = ("release", "replica")  # no mode: a total would move between series at each switch
NOTHING = Counters()

GAUGES = {
    "num_running": "Rows that are decoded.",
    "num_waiting": "Rows that wait for room.",
    "queued_tokens": "Tokens still to be computed for the rows that are there, at most.",
    "num_free_blocks": "Free KV blocks.",
    "num_blocks": "KV blocks.",
}
SERVED = {  # fields of RequestEntry, by the mode that the request was decoded in
    "num_prompt_tokens": "Prompt tokens of requests that ended.",
    "num_completion_tokens": "Completion tokens of requests that ended.",
    "num_rounds": "Rounds of requests that ended.",
    "drafted": "Drafted tokens of requests that ended.",
    "accepted": "Accepted tokens of requests that ended.",
}
VLLM_COUNTS = {
    "vllm:spec_decode_num_drafts": ("num_draft_rounds", "As vLLM: drafts."),
    "vllm:spec_decode_num_draft_tokens": ("drafted", "As vLLM: drafted tokens."),
    "vllm:spec_decode_num_accepted_tokens": ("accepted", "As vLLM: accepted tokens."),
    "vllm:generation_tokens": ("emitted", "As vLLM: generated tokens."),
}
VLLM_GAUGES = {
    "vllm:num_requests_running": ("num_running", "As vLLM: requests that are decoded."),
    "vllm:num_requests_waiting": ("num_waiting", "As vLLM: requests that wait."),
}
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos"


class MetricsPage:
    """Counts requests as they end; asks for the replicas' part when it is shown."""

    def __init__(self, model: str, guards: Callable[[], Mapping[str, Any]] = dict) -> None:
        """`guards`: what `Watch.told` tells of each release."""
        self._model = model
        self._guards = guards
        self._registry = CollectorRegistry()
        where = ("release", "arm", "mode")
        self._queue = self._histogram(
            "outrider_queue_s", "In the engine, before a request's first round.", where
        )
        self._first = self._histogram(
            "outrider_first_token_s", "From a request's arrival to its first token.", where
        )
        self._token = self._histogram(
            "outrider_token_s", "Between the tokens of an answer, on average.", where
        )
        self._total = self._histogram(
            "outrider_total_s", "From a request's arrival to its end.", where
        )
        self._requests = Counter(
            "outrider_num_requests",
            "Requests that ended, by HTTP status (499: the client left).",
            ("release", "arm", "status", "error"),
            registry=self._registry,
        )
        self._retries = Counter(
            "outrider_num_retries",
            "Tries after a lost replica.",
            ("release", "arm"),
            registry=self._registry,
        )

        self._served = {
            name: Counter(f"outrider_served_{name}", help_, where, registry=self._registry)
            for name, help_ in SERVED.items()
        }

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
            self._token.labels(*where).observe(rest_s / (entry.num_completion_tokens - 1))

    def render(self, stats: Iterable[ReplicaStats]) -> bytes:
        shown = CollectorRegistry()
        shown.register(_Told(list(stats), self._model))
        shown.register(GuardMetrics(self._guards()))
        return generate_latest(shown) + generate_latest(self._registry)

    def _histogram(self, name: str, help_: str, labels: tuple[str, ...]) -> Histogram:
        return Histogram(name, help_, labels, registry=self._registry, buckets=SECONDS)


class _Told:
    """What replicas told, as metric families."""

    def __init__(self, stats: list[ReplicaStats], model: str) -> None:
        self._stats = stats
        # A decode thread that does not answer tells of no counters: 0 would read as a restart.
        self._counted = [each for each in stats if each.counters != NOTHING]
        self._model = model

    def collect(self) -> Iterator[Metric]:
        for name, meter in METER_OF.items():
            yield self._counter(f"outrider_{meter.name}", name, meter.help)
        for name, help_ in GAUGES.items():
            yield self._gauge(f"outrider_{name}", name, help_)
        yield self._mode()
        yield from self._by_drafter()
        for shown, (name, help_) in VLLM_COUNTS.items():
            yield self._counter(shown, name, help_, labels=("model_name", "engine"))
        for shown, (name, help_) in VLLM_GAUGES.items():
            yield self._gauge(shown, name, help_, labels=("model_name", "engine"))
        yield self._per_position()

    def _counter(
        self, shown: str, name: str, help_: str, labels: tuple[str, ...] = WHERE
    ) -> Metric:
        family = CounterMetricFamily(shown, help_, labels=labels)
        for each in self._counted:
            family.add_metric(self._labels(each, labels), getattr(each.counters, name))
        return family

    def _gauge(self, shown: str, name: str, help_: str, labels: tuple[str, ...] = WHERE) -> Metric:
        family = GaugeMetricFamily(shown, help_, labels=labels)
        for each in self._stats:
            family.add_metric(self._labels(each, labels), getattr(each, name))
        return family

    def _mode(self) -> Metric:
        family = GaugeMetricFamily(
            "outrider_replica_mode", "1 for the mode that a replica is in.", labels=(*WHERE, "mode")
        )
        for each in self._stats:
            family.add_metric([*self._labels(each, WHERE), each.mode.value], 1)
        return family

    def _by_drafter(self) -> Iterator[Metric]:
        for name in ("drafted", "accepted", "num_draft_rounds"):
            meter = METER_OF[name]
            shown, help_ = f"outrider_drafter_{meter.name}", f"{meter.help} By drafter."
            family = CounterMetricFamily(shown, help_, labels=(*WHERE, "drafter"))
            for each in self._stats:
                for drafter, counters in sorted(each.by_drafter.items()):
                    labels = [*self._labels(each, WHERE), drafter]
                    family.add_metric(labels, getattr(counters, name))
            yield family

    def _per_position(self) -> Metric:
        family = CounterMetricFamily(
            PER_POSITION, "As vLLM.", labels=("model_name", "engine", "position")
        )
        for each in self._stats:
            counters: Counters = each.counters
            for position, accepted in enumerate(counters.position_accepts):
                family.add_metric([self._model, each.replica, str(position)], accepted)
        return family

    def _labels(self, each: ReplicaStats, labels: tuple[str, ...]) -> list[str]:
        if labels == WHERE:
            return [each.release, each.replica]
        return [self._model, each.replica]
