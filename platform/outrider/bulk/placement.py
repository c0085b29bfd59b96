"""How many cores a worker gets."""

from __future__ import annotations

import os

from outrider.config.schema import BulkSettings


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpus_per_worker(settings: BulkSettings, cores: int) -> int:
    """Ray CPUs and threads of one worker."""
    return settings.cpus_per_worker or max(1, cores // settings.num_workers)
