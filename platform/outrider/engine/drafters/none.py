"""The null object: never drafts, so that plain decoding needs no other code path."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Offer, Proposal


class NoDrafter:
    """Offers nothing, for every row."""

    name = "none"

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        return [NO_OFFER] * len(rows)

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        return Drafted([Proposal([]) for _ in rows])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        """Nothing was kept."""
