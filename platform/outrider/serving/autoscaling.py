"""How many replicas a release should have, from the engines' own load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

FULL_RATIO = 0.1  # free KV blocks below which a replica is as good as full
CALM = 0.7  # of the target: fewer replicas only where the rest would still be below it


def wanted_replicas(
    queued_tokens: Mapping[str, float],
    free_blocks_ratio: Mapping[str, float],
    *,
    target_tokens: float,
    current: int,
) -> int:
    """Replicas so that each has about `target_tokens` to do; one more where all KV is full.

    It does not shrink where the remaining ones would be near the target: no flapping.
    """
    total = sum(queued_tokens.values())
    wanted = math.ceil(total / target_tokens)
    free = list(free_blocks_ratio.values())
    if free and max(free) < FULL_RATIO:
        wanted = max(wanted, current + 1)
    if wanted < current:
        wanted = min(current, math.ceil(total / (CALM * target_tokens)))
    return max(wanted, 1)


class LoadPolicy:
    """The same as a Serve autoscaling policy. Serve applies its own bounds and delays."""

    def __init__(self, target_tokens: float) -> None:
        self._target_tokens = target_tokens

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        metrics = context.aggregated_metrics or {}
        tokens = metrics.get("queued_tokens", {})
        if not tokens:  # no replica has told yet
            return context.target_num_replicas, {}
        wanted = wanted_replicas(
            {str(replica): value for replica, value in tokens.items()},
            {str(r): value for r, value in metrics.get("free_blocks_ratio", {}).items()},
            target_tokens=self._target_tokens,
            current=context.current_num_replicas,
        )
        return wanted, {}
