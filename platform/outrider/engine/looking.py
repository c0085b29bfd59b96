"""Whether drafters may run draft forwards just to say how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST = 0.1  # log goodput: what looks are held to gain before anything is known
_RATE = 0.05  # of the way to what the last look promised
_LONGEST_WAIT = 128  # rounds


@dataclass(slots=True)
class Looking:
    """Looks are made as long as they pay, on average; else now and then, ever more seldom.

    A look is paid for before anybody knows what it shows, so the lengths that are best behind it
    can't tell whether it was worth it.
    """

    gain: float = _FIRST  # log goodput with looks over that without, a moving mean
    wait: int = 1  # rounds from a look to the next
    next_round: int = 0

    def is_due(self, round_: int) -> bool:
        return round_ >= self.next_round

    def observe(self, gain: float, round_: int) -> None:
        """`gain`: log goodput expected of `round_`, as it was looked at, over the same unseen."""
        self.gain += _RATE * (gain - self.gain)
        self.wait = 1 if self.gain > 0.0 else min(2 * self.wait, _LONGEST_WAIT)
        self.next_round = round_ + self.wait
