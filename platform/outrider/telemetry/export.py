"""Counters of an engine as Ray's own metrics, for the Prometheus that a cluster has already.

Ray adds the node and the replica, and puts `ray_` before every name: vLLM's own names can't be
had here. The gateway's /metrics has them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge

from outrider.core import Counters
from outrider.telemetry.meters import METER_OF

COUNTS = {  # name: field of Counters, meaning
    **{
        f"outrider_{meter.name}": (field, meter.help)
        for field, meter in METER_OF.items()
        if field
        in ("drafted", "evaluated", "accepted", "emitted", "num_rounds", "num_draft_rounds")
    },
    "vllm_spec_decode_num_drafts": ("num_draft_rounds", "As vLLM: drafts."),
    "vllm_spec_decode_num_draft_tokens": ("drafted", "As vLLM: drafted tokens."),
    "vllm_spec_decode_num_accepted_tokens": ("accepted", "As vLLM: accepted tokens."),
}
LABELS = ("release", "mode", "drafter")
ALL = "all"  # drafter of what is counted whoever drafted


class RayExporter:
    """Takes totals, passes on what they grew by."""

    def __init__(self, release: str) -> None:
        self._release = release
        self._counters = {
            name: Counter(name, description=help_, tag_keys=LABELS)
            for name, (_, help_) in COUNTS.items()
        }
        self._gauges: dict[str, Gauge] = {}
        self._before: dict[str, Counters] = {}

    def export(
        self, mode: str, by_drafter: Mapping[str, Counters], load: Mapping[str, float]
    ) -> None:
        """`by_drafter`: totals since the engine began, `ALL` among them; `load`: gauges."""
        for drafter, total in by_drafter.items():
            self._export(mode, drafter, total)
        for name, value in load.items():
            self._gauge(name).set(value, tags={"release": self._release})

    def _export(self, mode: str, drafter: str, total: Counters) -> None:
        before = self._before.get(drafter, Counters())
        tags = {"release": self._release, "mode": mode, "drafter": drafter}
        for name, (field, _) in COUNTS.items():
            grown = getattr(total, field) - getattr(before, field)
            if grown > 0:
                self._counters[name].inc(grown, tags=tags)
        self._before[drafter] = total

    def _gauge(self, name: str) -> Gauge:
        if name not in self._gauges:
            shown = f"outrider_{name}"
            self._gauges[name] = Gauge(shown, description=name, tag_keys=("release",))
        return self._gauges[name]
