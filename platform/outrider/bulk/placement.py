"""How many cores a worker gets."""

from __future__ import annotations

from outrider.config.schema import BulkSettings


def cpus_per_worker(settings: BulkSettings, cores: int) -> int:
    """Ray CPUs and threads of one worker."""
    return settings.cpus_per_worker or max(1, cores // settings.num_workers)
