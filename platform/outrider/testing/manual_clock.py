"""Time that moves only when told."""

from __future__ import annotations


class ManualClock:
    """A clock that moves only when told (seconds)."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now
