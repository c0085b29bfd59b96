"""How many requests each arm got: what a plan's weight came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from outrider.serving.split import Arm, Choice, Plan


class Shares:
    """Counts requests that nobody forced into an arm.

    One that went to stable because the candidate had its share of the minute is stable's.
    """

    def __init__(self, plan: Plan) -> None:
        self._split = _split(plan)
        self._now: Counter[Arm] = Counter()
        self._total: Counter[tuple[str, Arm]] = Counter()

    def put(self, plan: Plan) -> None:
        """Another split is counted anew."""
        if _split(plan) != self._split:
            self._split = _split(plan)
            self._now.clear()

    def count(self, choice: Choice) -> None:
        self._now[choice.arm] += 1
        self._total[choice.release, choice.arm] += 1

    @property
    def now(self) -> Mapping[Arm, int]:
        """Requests since the split in force began, by arm."""
        return {arm: self._now[arm] for arm in Arm}

    @property
    def total(self) -> Mapping[tuple[str, Arm], int]:
        """Requests since the gateway began, by release and arm."""
        return dict(self._total)

    def ratio(self, arm: Arm) -> float | None:
        """Share that an arm got since the split in force began; None where nothing came."""
        num = self._now.total()
        return self._now[arm] / num if num else None


def _split(plan: Plan) -> tuple[str, str | None, str, float]:
    return plan.stable, plan.candidate, plan.salt, plan.weight
