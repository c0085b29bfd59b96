"""What a cluster has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outrider.core import UserError


def cores_each(machines: Sequence[int], num_workers: int) -> int:
    """The most cores that each of the workers may have; 0: there is no room for so many.

    `machines`: cores of each. A worker is on one of them.
    """
    for cores in range(max(machines, default=0), 0, -1):
        if sum(machine // cores for machine in machines) >= num_workers:
            return cores
    return 0


def room_for(num_workers: int, nodes: Sequence[Mapping[str, Any]], *, key: str) -> int:
    """Cores of each worker. `nodes`: as `ray.nodes()` tells them.

    Raises UserError, which names `key`, where the cluster is too small. What others use of it
    now is not looked at: Ray waits for it.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    machines = [int(resources.get("CPU", 0)) for resources in alive]
    cores = cores_each(machines, num_workers)
    if not cores:
        raise UserError(
            f"{key}={num_workers}: the cluster has {sum(machines)} cores in all, each worker "
            "needs one: lower it"
        )
    return cores
