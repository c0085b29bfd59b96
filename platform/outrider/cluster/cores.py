"""Which cores there are."""

from __future__ import annotations

import os


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_given() -> bool:
    """Whether the user named a cluster that runs already: its cores are not this machine's."""
    return "RAY_ADDRESS" in os.environ
