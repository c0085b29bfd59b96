"""Engines that stay open from group to group and rung to rung, where the next one has them too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider.core import Clock, Fault
from outrider.trial.contender import Contender
from outrider.trial.seat import Seat
from outrider.trial.side import OpenSide


@dataclass(frozen=True, kw_only=True)
class SweepSeats:
    """Loading and calibrating a model takes as long as a rung's turns: it is done once."""

    open_side: OpenSide
    clock: Clock
    tell: Callable[[str], None]
    _seats: dict[str, Seat] = field(default_factory=dict)

    def taken(self, contenders: Sequence[Contender]) -> list[Seat]:
        """Theirs, open; all others are closed first, to make room."""
        self._leave(set(self._seats) - {one.name for one in contenders})
        for one in contenders:
            if one.name not in self._seats:
                self._seats[one.name] = self._opened(one)
        return [self._seats[one.name] for one in contenders]

    def close(self) -> None:
        self._leave(set(self._seats))

    def _leave(self, names: set[str]) -> None:
        for name in names:
            self._seats.pop(name).close()

    def _opened(self, contender: Contender) -> Seat:
        """A candidate that has no room, say, loses its requests: the search of the others goes on.

        Raises UserError for one that can't be meant, and Fault for plain decoding.
        """
        self.tell(f"opening {contender.name}")
        seat = Seat(contender=contender, open_side=self.open_side, clock=self.clock, tell=self.tell)
        try:
            seat.open()
        except Fault as fault:
            if contender.is_baseline:
                raise
            self.tell(f"{fault}: its requests are lost")
        return seat
