"""What goes into the decisions about speculation, and what came of them, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from outrider.engine.acceptance import RowAcceptance, describe_row
from outrider.engine.breaker import CLOSED, BreakerState, Phase
from outrider.engine.drafters import NO_OFFER, Offer


@dataclass(slots=True)
class RowState:
    """What is remembered about one row."""

    row_id: int
    acceptance: RowAcceptance = field(default_factory=dict)
    breaker: BreakerState = CLOSED

    @property
    def has_opened(self) -> bool:
        """Whether its own breaker is not closed."""
        return self.breaker.phase is not Phase.CLOSED

    def to_dict(self) -> dict[str, object]:
        return {
            "row_id": self.row_id,
            "log_odds_shift": dict(describe_row(self.acceptance)),
            "breaker": self.breaker.to_dict(),
        }


class Candidate(NamedTuple):
    """A decoding row of the round to come. `limit` 0: it may not draft (any reason)."""

    row: RowState
    offer: Offer
    limit: int


class RowOutcome(NamedTuple):
    """What happened to one decoding row in a round. `drafted` 0: it decoded plainly."""

    row: RowState
    offer: Offer = NO_OFFER
    drafted: int = 0  # tokens sent to the target
    evaluated: int = 0  # tested by the rule
    accepted: int = 0
    emitted: int = 1
    failed: bool = False  # asked to draft, and its drafter failed


class RoundCost(NamedTuple):
    """What a round was and took."""

    rows: int  # decoding and prefilling
    tokens: int  # scored: prefill, one per decoding row, and drafts
    draft_steps: int  # draft forwards run, or what cost as much
    seconds: float  # of the whole served round
    was_unprepared: bool = False  # the model had to prepare for this size first
