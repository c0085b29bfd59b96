"""What a server says that its replicas hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """What all replicas hold."""

    num_rows: int
    num_blocks: int
    num_rounds: int

    @staticmethod
    def of(status: Any) -> InUse:
        """`status` is /admin/status."""
        replicas = replica_stats(status)
        return InUse(
            num_rows=sum(each["num_running"] + each["num_waiting"] for each in replicas),
            num_blocks=sum(each["num_blocks"] - each["num_free_blocks"] for each in replicas),
            num_rounds=sum(each["num_rounds"] for each in replicas),
        )


def replica_stats(status: Any) -> list[dict[str, Any]]:
    """What each replica tells about itself; `status` is /admin/status."""
    return list(status["replicas"])
