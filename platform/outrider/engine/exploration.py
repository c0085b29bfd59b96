"""Trying again what was given up, so that early bad luck does not last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.engine.acceptance import AcceptanceModel
from outrider.engine.row_outcome import Candidate, RowOutcome

_EXPLORE_EVERY = 80  # rounds: a class that is held to be poor is tried in 1.25 % of them
_EXPLORE_LENGTH = 2  # tokens beyond what the rule chose


@dataclass(slots=True)
class Exploration:
    """A forced short draft now and then: in 1 of 80 rounds while nothing comes of it, and again
    at once when it was accepted, so that a class that has become good is back within rounds."""

    next_round: int = _EXPLORE_EVERY
    row_id: int | None = None  # row of the exploration under way, or of the last that succeeded
    needed: int = 0  # accepted tokens that make it a success

    def is_due(self, round_: int) -> bool:
        return round_ >= self.next_round

    def extend(
        self,
        candidates: Sequence[Candidate],
        limits: Sequence[int],
        lengths: list[int],
        acceptance: AcceptanceModel,
    ) -> None:
        """Lengthen one row's draft: that of the last success, else the longest untested class."""
        able = [i for i, limit in enumerate(limits) if lengths[i] < limit]
        if not able:
            return

        def age(index: int) -> tuple[bool, int]:
            row, offer, _ = candidates[index]
            tested = acceptance.last_tested(offer.name, offer.levels[lengths[index]])
            return row.row_id != self.row_id, tested

        index = min(able, key=age)
        self.row_id = candidates[index].row.row_id
        self.needed = lengths[index] + 1
        lengths[index] = min(limits[index], lengths[index] + _EXPLORE_LENGTH)

    def observe(self, outcomes: Sequence[RowOutcome], round_: int) -> None:
        """`round_` is the number of the next round."""
        if self.needed == 0:
            return
        explored = next((o for o in outcomes if o.row.row_id == self.row_id), None)
        succeeded = explored is not None and explored.accepted >= self.needed
        self.needed = 0
        self.row_id = self.row_id if succeeded else None
        self.next_round = round_ + (0 if succeeded else _EXPLORE_EVERY)
