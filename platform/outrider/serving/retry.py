"""How often a call that has not begun is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 0.1
MOST_WAIT_S = 2.0
MOST_S = 30.0  # of tries that nobody took
HELD_S = 1.0  # a try that lasted so long was taken: somebody worked on the call
MOST_HELD = 3  # losses of those; a call that kills whoever takes it must not go on for ever


@dataclass(slots=True)
class Patience:
    """Of one call. Waits double; none begins that would end behind the call's deadline, `ends`, or
    `MOST_S` after the first of several losses in a row. Times are seconds of one clock.
    """

    ends: float
    begun: float = 0.0  # the try under way
    num_held: int = 0
    num_waits: int = 0  # in a row
    until: float | None = None

    @classmethod
    def of(cls, deadline_s: float, now: float) -> Patience:
        """Of a call that came at `now`, is tried at once and may take `deadline_s`."""
        return cls(ends=now + deadline_s, begun=now)

    def lost(self, now: float) -> float | None:
        """The try under way was lost: seconds before the next one; None: give up."""
        is_held = now - self.begun >= HELD_S
        self.num_held += is_held
        if is_held or self.until is None:
            self.num_waits, self.until = 0, min(now + MOST_S, self.ends)
        wait = min(FIRST_WAIT_S * 2 ** min(self.num_waits, 10), MOST_WAIT_S)
        self.num_waits += 1
        self.begun = now + wait
        return wait if self.begun <= self.until and self.num_held < MOST_HELD else None
