"""One contender's engine, wherever it runs: what a trial asks of it."""

from __future__ import annotations

from typing import Protocol

from outrider.core import Fault
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch

Rivals = tuple[int, int]
"""The tokens that two answers went on with where they parted."""


class Lost(Fault):
    """The engine, or the process that it was in, is gone: it has to be opened again."""


class Side(Protocol):
    """Decodes when it is its turn. Nothing raises for one request."""

    def decode(self, batch: Batch) -> Measured:
        """One turn and its observations; `submitted_s` counts from the turn's beginning.

        Raises Lost.
        """

    def margin(self, case: Case, prefix: tuple[int, ...], rivals: Rivals) -> float:
        """How clear the choice behind the case's prompt and `prefix` was, in logits. Raises Lost.

        `engine.margin`: of the two likeliest tokens where the case is greedy, else of `rivals`.
        """

    def close(self) -> None: ...


class OpenSide(Protocol):
    """Opens a contender's engine. Raises UserError or Fault where it can't be opened."""

    def __call__(self, contender: Contender) -> Side: ...
