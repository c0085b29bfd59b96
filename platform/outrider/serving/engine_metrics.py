"""What the replicas of all releases tell, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from prometheus_client.metrics_core import Metric

from outrider.core import Counters
from outrider.engine.breaker import Phase
from outrider.serving.families import counter_of, gauge_of
from outrider.serving.messages import ReplicaStats
from outrider.telemetry import live_meters as live
from outrider.telemetry import meters
from outrider.telemetry.meter import Meter

WHERE = ("release", "replica")  # no mode: a total would move between series at each switch

GAUGES: dict[str, Meter] = {  # field of ReplicaStats: its figure
    "num_running": meters.NUM_RUNNING,
    "num_waiting": meters.NUM_WAITING,
    "max_waiting": live.MAX_WAITING,
    "queued_tokens": live.QUEUED_TOKENS,
    "num_free_blocks": live.NUM_FREE_BLOCKS,
    "num_blocks": live.NUM_BLOCKS,
}
POSITIONS: tuple[tuple[Meter, str, Callable[[Counters], list[int]]], ...] = (
    (live.ROUNDS_BY_DRAFT_LENGTH, "draft_length", lambda counters: counters.rounds_by_length),
    (live.POSITION_EVALUATED_TOKENS, "position", lambda counters: counters.position_attempts),
    (live.POSITION_ACCEPTED_TOKENS, "position", lambda counters: _accepted(counters)),
)


class EngineMetrics:
    """Of one look at the replicas."""

    def __init__(self, stats: Sequence[ReplicaStats]) -> None:
        self._stats = stats
        # A decode thread that does not answer tells of no counters: 0 would read as a restart.
        self._counted = [each for each in stats if each.has_counted]

    def collect(self) -> Iterator[Metric]:
        for name, meter in meters.METER_OF.items():
            yield self._counter(meter, attrgetter(f"counters.{name}"))
        yield self._counter(live.ROUNDS_S, attrgetter("drafts.rounds_s"))
        yield self._counter(live.PLAIN_ROUNDS_S, attrgetter("drafts.plain_rounds_s"))
        for name, meter in GAUGES.items():
            yield self._gauge(meter, self._stats, name)
        yield self._gauge(live.NUM_OPEN_ROWS, self._counted, "num_open_rows")
        yield self._mode()
        yield self._breaker()
        yield from self._by_drafter()
        for meter, label, of in POSITIONS:
            yield self._by_position(meter, label, of)

    def _counter(self, meter: Meter, of: Callable[[ReplicaStats], float]) -> Metric:
        family = counter_of(meter, *WHERE)
        for each in self._counted:
            family.add_metric(_where(each), of(each))
        return family

    def _gauge(self, meter: Meter, stats: Sequence[ReplicaStats], name: str) -> Metric:
        family = gauge_of(meter, *WHERE)
        for each in stats:
            family.add_metric(_where(each), getattr(each, name))
        return family

    def _mode(self) -> Metric:
        family = gauge_of(live.REPLICA_MODE, *WHERE, "mode")
        for each in self._stats:
            family.add_metric([*_where(each), each.mode.value], 1)
        return family

    def _breaker(self) -> Metric:
        family = gauge_of(live.BREAKER_PHASE, *WHERE, "phase")
        for each in self._stats:
            for phase in Phase if each.breaker_phase else ():
                holds = float(each.breaker_phase == phase.value)
                family.add_metric([*_where(each), phase.value], holds)
        return family

    def _by_drafter(self) -> Iterator[Metric]:
        for name, meter in meters.BY_DRAFTER.items():
            family = counter_of(meter, *WHERE, "drafter")
            for each in self._stats:
                for drafter, counters in sorted(each.by_drafter.items()):
                    family.add_metric([*_where(each), drafter], getattr(counters, name))
            yield family

    def _by_position(self, meter: Meter, label: str, of: Callable[[Counters], list[int]]) -> Metric:
        family = counter_of(meter, *WHERE, label)
        for each in self._counted:
            for position, count in enumerate(of(each.counters)):
                family.add_metric([*_where(each), str(position)], count)
        return family


def _accepted(counters: Counters) -> list[int]:
    """By position, as far as any was tested: none accepted is 0, not silence."""
    accepts = counters.position_accepts
    return accepts + [0] * (len(counters.position_attempts) - len(accepts))


def _where(each: ReplicaStats) -> list[str]:
    return [each.release, each.replica]
