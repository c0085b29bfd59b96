"""What the evidence lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outrider.serving.sample import Reading
from outrider.telemetry import meters


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Growth of the gateway's own counts since the first reading, over its restarts."""

    num_lost: int = 0  # lines that were overwritten before they were read
    num_shadows_dropped: int = 0
    num_over_limit: int = 0
    epoch: str = ""  # of the last reading; empty: none yet
    last: tuple[int, int, int] = (0, 0, 0)  # its counts, in the same order

    def after(self, reading: Reading) -> Losses:
        """The first reading counts nothing: what came before it is not this step's."""
        now = (reading.num_lost, reading.num_shadows_dropped, reading.num_over_limit)
        epoch = reading.cursor.epoch
        known = now if not self.epoch else self.last if epoch == self.epoch else (0, 0, 0)
        lost, dropped, over = (max(a - b, 0) for a, b in zip(now, known, strict=True))
        return Losses(
            num_lost=self.num_lost + lost,
            num_shadows_dropped=self.num_shadows_dropped + dropped,
            num_over_limit=self.num_over_limit + over,
            epoch=epoch,
            last=now,
        )

    def figures(self) -> dict[str, float]:
        return {
            meters.NUM_LINES_LOST.name: float(self.num_lost),
            meters.NUM_SHADOWS_DROPPED.name: float(self.num_shadows_dropped),
            meters.NUM_OVER_LIMIT.name: float(self.num_over_limit),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Losses:
        return Losses(**dict(data) | {"last": tuple(data["last"])})
