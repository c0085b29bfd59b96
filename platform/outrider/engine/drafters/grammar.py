"""What a constraint leaves no choice about is a draft for nothing: it is always accepted."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.core import Clock
from outrider.engine.drafters import Drafted, DraftRow, Offer, Proposal, SafeDrafter
from outrider.engine.drafters.composite import CompositeDrafter
from outrider.engine.drafters.guarded import GuardedDrafter

# A shorter run is left to a drafter that may see beyond it.
LONG_RUN = 2  # tokens


class GrammarDrafter:
    """Offers the tokens that a row's constraint forces, such as the names in a JSON schema."""

    name = "grammar"

    def __init__(self) -> None:
        self._forced: dict[int, list[int]] = {}  # row id -> what was offered last

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        pairs = zip(rows, limits, strict=True)
        return [self._offer_one(row, limit) for row, limit in pairs]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        pairs = zip(rows, lengths, strict=True)
        return Drafted([Proposal(self._forced.get(row.row_id, [])[:k]) for row, k in pairs])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self._forced.pop(row_id, None)

    def _offer_one(self, row: DraftRow, limit: int) -> Offer:
        run = row.forced()[:limit] if limit > 0 else []
        self._forced[row.row_id] = run
        return Offer(self.name, (min(len(run), LONG_RUN),) * len(run))


def forced_first(other: SafeDrafter, *, vocab_size: int, clock: Clock) -> SafeDrafter:
    """`other`, but for rows with a long run of forced tokens or nothing better."""
    grammar = GuardedDrafter(GrammarDrafter(), vocab_size=vocab_size, clock=clock)
    return CompositeDrafter(grammar, other, min_level=LONG_RUN)
