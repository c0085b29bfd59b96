"""How often a call that has not begun is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 0.1
MOST_WAIT_S = 2.0
MOST_S = 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits double; none begins that would end behind `until` (seconds, the clock's)."""

    until: float

    @classmethod
    def of(cls, deadline_s: float, now: float) -> Patience:
        """Of a call that came at `now` and may take `deadline_s`."""
        return cls(now + min(deadline_s, MOST_S))

    def wait_s(self, num_retries: int, now: float) -> float | None:
        """Seconds before the next try, after `num_retries`; None: give up."""
        wait = min(FIRST_WAIT_S * 2 ** min(num_retries, 10), MOST_WAIT_S)
        return wait if now + wait <= self.until else None
