"""Contenders decode the same prompts in turn: what a trial sees. No store is met here.

The machine's speed drifts; a ratio of turns that ran seconds apart does not. Who goes first
rotates from batch to batch, so that nobody always finds the machine as the same other left it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from outrider.core import Clock
from outrider.trial.case import Case
from outrider.trial.observation import Measured
from outrider.trial.parity import Judge
from outrider.trial.plan import Batch, warmup
from outrider.trial.seat import Seat
from outrider.trial.tally import since


@dataclass(kw_only=True)
class Course:
    """The whole way of a trial. The seats are open already; their names are unique."""

    seats: Sequence[Seat]
    warmup: Sequence[Case]  # other than those measured, decoded before anything is timed
    near_tie: float  # logits
    clock: Clock
    tell: Callable[[str], None]
    _began_s: float = field(default=0.0)

    def run(self, plans: Iterable[Sequence[Batch]]) -> Measured:
        """Every batch by every contender. The batches of one plan have one number in flight."""
        self._began_s = self.clock.monotonic()
        seen = Measured()
        for plan in plans:
            self._warm_up(plan[0].in_flight)
            for number, batch in enumerate(plan, start=1):
                seen += self._batch(batch)
                self.tell(f"{batch.in_flight} in flight: {number}/{len(plan)}")
        return seen

    def _warm_up(self, in_flight: int) -> None:
        if not self.warmup:
            return
        for seat in self.seats:
            self.tell(f"{in_flight} in flight: warming up {seat.name}")
            seat.warm_up(warmup(self.warmup, in_flight))

    def _batch(self, batch: Batch) -> Measured:
        turn = batch.number % len(self.seats)
        seen: dict[str, Measured] = {}
        for seat in [*self.seats[turn:], *self.seats[:turn]]:
            began_s = self.clock.monotonic() - self._began_s
            seen[seat.name] = since(seat.decode(batch), began_s)
        return self._with_parity(batch, seen)

    def _with_parity(self, batch: Batch, seen: dict[str, Measured]) -> Measured:
        """After all turns: the questions that near ties ask take nobody's time."""
        judge, seats = Judge(batch=batch, near_tie=self.near_tie), {s.name: s for s in self.seats}
        whole = Measured()
        for seat in self.seats:
            mine, base = seen[seat.name], seats.get(seat.contender.baseline)
            if base is not None:
                theirs = {one.case: one for one in seen[base.name].observations}
                told = judge.compared(seat, base, mine.observations, theirs)
                mine = Measured(observations=tuple(told), turns=mine.turns)
            whole += mine
        return whole
