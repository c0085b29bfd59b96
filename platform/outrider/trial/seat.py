"""A contender's place in a trial: its engine, opened again where its process is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from outrider.core import Clock, Fault, UserError
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch
from outrider.trial.side import Lost, OpenSide, Rivals, Side
from outrider.trial.tally import lost

MAX_LOST = 2  # in a row: then the contender has failed, and its other requests with it


@dataclass(kw_only=True)
class Seat:
    """Whatever happens to the contender's process, each of its requests has an observation."""

    contender: Contender
    open_side: OpenSide
    clock: Clock
    tell: Callable[[str], None]
    _side: Side | None = None
    _warm: Batch | None = None
    _num_lost: int = 0  # in a row

    @property
    def name(self) -> str:
        return self.contender.name

    def open(self) -> None:
        """Raises UserError or Fault where it can't be opened, with the contender's name."""
        try:
            self._side = self.open_side(self.contender)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error
        except Fault as fault:
            raise Fault(f"{self.name}: {fault}") from fault

    def warm_up(self, batch: Batch) -> None:
        """Decode what is not counted; the same again whenever it is opened anew."""
        self._warm = batch
        self.decode(batch)

    def decode(self, batch: Batch) -> Measured:
        """One turn. Where the process died in it, all its requests are lost."""
        began_s = self.clock.monotonic()
        if self._side is None:
            return self._lost(batch, began_s)
        try:
            measured = self._side.decode(batch)
        except Lost as loss:
            gone = self._lost(batch, began_s)
            self._again(loss)
            return gone
        self._num_lost = 0
        return measured

    def margin(self, case: Case, prefix: tuple[int, ...], rivals: Rivals) -> float:
        """Raises Lost where there is nobody to ask."""
        if self._side is None:
            raise Lost(f"{self.name} has failed")
        try:
            return self._side.margin(case, prefix, rivals)
        except Lost as loss:
            self._again(loss)
            raise

    def close(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None

    def _lost(self, batch: Batch, began_s: float) -> Measured:
        return lost(self.name, batch, self.clock.monotonic() - began_s)

    def _again(self, loss: Lost) -> None:
        """Open it again, unless it was lost too often: then it stays away."""
        self.close()
        self._num_lost += 1
        if self._num_lost >= MAX_LOST:
            self._fail(str(loss))
            return
        self.tell(f"{self.name} was lost ({loss}): it is opened again")
        try:
            self.open()
            if self._warm is not None and self._side is not None:
                self._side.decode(self._warm)
        except (UserError, Fault) as error:
            self._fail(str(error))

    def _fail(self, why: str) -> None:
        """Raises Fault for a baseline: without it there is nothing to compare with."""
        self.close()
        if self.contender.is_baseline:
            raise Fault(f"{self.name}: lost again ({why}): there is nothing to compare with")
        self.tell(f"{self.name} has failed ({why}): its other requests are lost")


@contextmanager
def seated(
    contenders: Sequence[Contender],
    open_side: OpenSide,
    clock: Clock,
    tell: Callable[[str], None],
) -> Iterator[list[Seat]]:
    """All of them in their seats, open; left at the end."""
    with ExitStack() as opened:
        seats = []
        for contender in contenders:
            tell(f"opening {contender.name}")
            seat = Seat(contender=contender, open_side=open_side, clock=clock, tell=tell)
            opened.callback(seat.close)
            seat.open()
            seats.append(seat)
        yield seats
