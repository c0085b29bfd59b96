"""What came of many simulated rollouts, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from outrider.rollout.effect import Effect, Traffic

_Z = 1.96  # of a two-sided 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Rollouts of the same candidate. Requests are those of both arms, from the beginning on."""

    effect: Effect
    traffic: Traffic
    num_rollouts: int
    num_looks: int
    num_ever_failed: int  # at any look, had each stage lasted its whole time
    detected: tuple[int, ...]  # requests until each that was rolled back was, sorted
    promoted: tuple[int, ...]  # requests until each that was promoted was, sorted

    @property
    def num_rolled_back(self) -> int:
        return len(self.detected)

    @property
    def num_promoted(self) -> int:
        return len(self.promoted)

    @property
    def num_held(self) -> int:
        """Still undecided when a step's time was over."""
        return self.num_rollouts - self.num_rolled_back - self.num_promoted

    @property
    def lines(self) -> list[str]:
        return [
            f"{self.effect.name}: {self.share(self.num_rolled_back)} rolled back, "
            f"{self.share(self.num_promoted)} promoted, "
            f"{self.share(self.num_held)} undecided when a step's time was over",
            *self._median("until it is rolled back", self.detected),
            *self._median("until it is promoted", self.promoted),
        ]

    def share(self, num: int) -> str:
        """With its 95 % interval."""
        low, high = wilson(num, self.num_rollouts)
        return f"{num / self.num_rollouts:.1%} ({low:.1%} to {high:.1%})"

    def _median(self, words: str, requests: tuple[int, ...]) -> Iterator[str]:
        if requests:
            middle = requests[len(requests) // 2]
            minutes = middle / self.traffic.per_s / 60
            yield f"  {words}: {middle:,} requests, {minutes:.0f} min (median)"


def wilson(num: int, total: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    share, grown = num / total, 1 + _Z**2 / total
    middle = share + _Z**2 / (2 * total)
    reach = _Z * math.sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2))
    return max((middle - reach) / grown, 0.0), min((middle + reach) / grown, 1.0)
