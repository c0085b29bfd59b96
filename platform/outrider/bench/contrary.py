"""A drafter that is always wrong: what must cost next to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.engine.drafters import Drafted, DraftRow, Offer, Proposal


class ContraryDrafter:
    """Offers as many tokens as allowed each round and proposes one the target never says.

    `never` is an id that the target does not emit on this workload (a control token).
    """

    name = "contrary"

    def __init__(self, never: int) -> None:
        self._never = never

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        return [Offer(self.name, tuple(range(limit)) if limit > 0 else ()) for limit in limits]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        return Drafted([Proposal([self._never] * length) for length in lengths])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        """Nothing is remembered."""
