"""A replica's stats as Ray's own metrics."""

from __future__ import annotations

from outrider.serving.messages import ReplicaStats
from outrider.telemetry.export import ALL, RayExporter

LOAD = ("num_running", "num_waiting", "queued_tokens", "num_free_blocks")


class StatsExporter:
    """Sees the stats now and then; passes on what has grown."""

    def __init__(self, release: str, replica: str) -> None:
        self._exporter = RayExporter(release, replica)

    def see(self, stats: ReplicaStats) -> None:
        self._exporter.export(
            stats.mode.value,
            {ALL: stats.counters, **stats.by_drafter},
            {name: getattr(stats, name) for name in LOAD},
        )
