"""One contender's engine, wherever it runs: what a trial asks of it."""

from __future__ import annotations

from typing import Protocol

from outrider.core import Fault
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch


class Lost(Fault):
    """The engine, or the process that it was in, is gone: it has to be opened again."""


class Side(Protocol):
    """Decodes when it is its turn. Nothing raises for one request."""

    def decode(self, batch: Batch) -> Measured:
        """One turn and its observations; `submitted_s` counts from the turn's beginning.

        Raises Lost.
        """

    def margin(self, case: Case, prefix: tuple[int, ...]) -> float:
        """`engine.margin.top2_margin` behind the case's prompt and `prefix`. Raises Lost."""

    def close(self) -> None: ...


class OpenSide(Protocol):
    """Opens a contender's engine. Raises UserError or Fault where it can't be opened."""

    def __call__(self, contender: Contender) -> Side: ...
