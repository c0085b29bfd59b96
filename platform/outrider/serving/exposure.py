"""How many requests a candidate had of late: an operator's bound on what it may do wrong."""

from __future__ import annotations

from collections import deque

WINDOW_S = 60.0


class Exposure:
    """Counts over a sliding minute: at no time more than allowed lie within one."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def admit(self, most_per_minute: int, now_s: float) -> bool:
        """Whether one more is allowed, which is counted then. 0: any number."""
        times = self._times
        while times and times[0] <= now_s - WINDOW_S:
            times.popleft()
        if most_per_minute and len(times) >= most_per_minute:
            return False
        times.append(now_s)
        return True
