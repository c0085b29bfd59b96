"""What the engine counts. Law 11: accepted <= evaluated <= drafted; emitted = accepted + rounds -
cropped."""

from __future__ import annotations

from collections.abc import Iterable

from outrider.core import Counters, add_by_position, count_at
from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.engine.round import Turn
from outrider.engine.row import Row


class Ledger:
    """Counters of ended rows, of each drafter, and the rounds that ran."""

    def __init__(self) -> None:
        self.num_rounds = 0
        self.ended = Counters()
        self.drafts = NOTHING_DRAFTED  # of ended and running rows; goodput is not known here
        self._by_drafter: dict[str, Counters] = {}

    def enter(self, turn: Turn) -> None:
        """Count a committed turn for its row and for its drafter."""
        _count_turn(turn)
        if turn.proposal.tokens:
            accepted = turn.outcome.accepted if turn.outcome else 0
            self.drafts += DraftSums(len(turn.proposal.tokens), accepted)
            _count_drafted(self._by_drafter.setdefault(turn.offer.name, Counters()), turn)

    def close(self, row: Row) -> None:
        self.ended += row.counters

    def to_dict(self, rows: Iterable[Row]) -> dict[str, object]:
        """Totals with those of `rows`, which still run, as plain data."""
        total = Counters()
        for counters in (self.ended, *(row.counters for row in rows)):
            total += counters
        return {
            "counters": total.to_dict(),
            "by_drafter": {name: each.to_dict() for name, each in self._by_drafter.items()},
        }


def _count_turn(turn: Turn) -> None:
    outcome, counters = turn.outcome, turn.row.counters
    assert outcome is not None
    counters.num_rounds += 1
    counters.emitted += turn.emitted
    counters.cropped += outcome.accepted + 1 - turn.emitted
    counters.num_drafter_failures += turn.proposal.failure is not None
    _count_drafted(counters, turn)


def _count_drafted(counters: Counters, turn: Turn) -> None:
    """What became of the turn's draft."""
    outcome = turn.outcome
    assert outcome is not None
    drafted = len(turn.proposal.tokens)
    counters.num_draft_rounds += drafted > 0
    counters.drafted += drafted
    counters.evaluated += outcome.evaluated
    counters.accepted += outcome.accepted
    counters.num_caught_up += turn.proposal.num_caught_up
    count_at(counters.rounds_by_length, drafted)
    add = [1] * outcome.evaluated
    add_by_position(counters.position_attempts, add)
    add_by_position(counters.position_accepts, add[: outcome.accepted])
