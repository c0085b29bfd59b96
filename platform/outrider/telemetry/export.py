"""Counters of an engine as Ray's own metrics, for the Prometheus that a cluster has already.

Ray shows `ray_` before every name and `_total` behind a counter's. It refuses the colon of
vLLM's names (a warning now, an error later), so these are written as vLLM's own exporter for Ray
writes them: `vllm:spec_decode_num_drafts` becomes `ray_vllm_spec_decode_num_drafts_total`. The
gateway's /metrics has the names with their colons.

Ray tells processes apart by its own label `WorkerId`: sum over it. What a process counted stays
on its node's page when it is gone; its gauges leave.
"""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge

from outrider.core import Counters
from outrider.telemetry.growth import growth
from outrider.telemetry.meters import BY_DRAFTER, METER_OF, METERS

NOTHING = Counters()
ALL = "all"  # key of the totals, whoever drafted
TOTALS = {  # name: field of Counters, meaning
    **{meter.shown: (field, meter.help) for field, meter in METER_OF.items()},
    "vllm_spec_decode_num_drafts": ("num_draft_rounds", "As vLLM: drafts."),
    "vllm_spec_decode_num_draft_tokens": ("drafted", "As vLLM: drafted tokens."),
    "vllm_spec_decode_num_accepted_tokens": ("accepted", "As vLLM: accepted tokens."),
}
DRAFTER_TOTALS = {meter.shown: (field, meter.help) for field, meter in BY_DRAFTER.items()}
PER_POSITION = "vllm_spec_decode_num_accepted_tokens_per_pos"


class RayExporter:
    """Takes totals, passes on what they grew by. For one replica; not thread-safe."""

    def __init__(self, release: str, replica: str = "") -> None:
        self._where = {"release": release, "replica": replica}
        self._totals = _counters(TOTALS, ("release", "mode"))
        self._by_drafter = _counters(DRAFTER_TOTALS, ("release", "mode", "drafter"))
        labels = ("release", "mode", "position")
        self._positions = Counter(PER_POSITION, "As vLLM: accepted, by position.", labels)
        self._gauges: dict[str, Gauge] = {}
        self._before: dict[str, Counters] = {}

    def export(
        self, mode: str, by_drafter: Mapping[str, Counters], load: Mapping[str, float]
    ) -> None:
        """`by_drafter`: totals since the engine began, `ALL` among them; `load`: gauges, by
        the catalogue's names.

        What was counted since the last call is put down to `mode`. Totals of nothing say nothing:
        so tells a replica whose decode thread does not answer, and it may yet answer.
        """
        for drafter, now in by_drafter.items():
            if now == NOTHING:
                continue
            new = growth(self._before.get(drafter, NOTHING), now)
            self._before[drafter] = _copy(now)
            tags = {"release": self._where["release"], "mode": mode}
            if drafter == ALL:
                _grow(self._totals, TOTALS, new, tags)
                self._grow_positions(new.position_accepts, tags)
            else:
                _grow(self._by_drafter, DRAFTER_TOTALS, new, {**tags, "drafter": drafter})
        for name, value in load.items():
            self._gauge(name).set(value, tags=self._where)

    def _grow_positions(self, accepts: list[int], tags: dict[str, str]) -> None:
        for position, accepted in enumerate(accepts):
            if accepted > 0:
                self._positions.inc(accepted, tags={**tags, "position": str(position)})

    def _gauge(self, name: str) -> Gauge:
        if name not in self._gauges:
            meter = METERS[name]
            self._gauges[name] = Gauge(meter.shown, meter.help, tuple(self._where))
        return self._gauges[name]


def _counters(names: Mapping[str, tuple[str, str]], labels: tuple[str, ...]) -> dict[str, Counter]:
    return {name: Counter(name, help_, labels) for name, (_, help_) in names.items()}


def _grow(
    counters: Mapping[str, Counter],
    names: Mapping[str, tuple[str, str]],
    new: Counters,
    tags: dict[str, str],
) -> None:
    for name, (field, _) in names.items():
        if getattr(new, field) > 0:  # Ray refuses to add 0
            counters[name].inc(getattr(new, field), tags=tags)


def _copy(counters: Counters) -> Counters:
    """An engine in this process goes on counting in the object that it gave."""
    return growth(NOTHING, counters)
