"""What drafting gave, as sums that grow: what a whole release is judged by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DraftSums:
    """Of one engine since it began, or of many in a span of time."""

    drafted: int = 0  # tokens
    accepted: int = 0
    num_drafts: int = 0  # blocks whose goodput was measured
    goodput: float = 0.0  # each block's goodput over plain decoding's (`pace.Pace.of_row`), summed
    rounds_s: float = 0.0  # seconds of rounds, plain ones too
    plain_rounds_s: float = 0.0  # that plain decoding of their tokens would have taken (`Pace`)

    def __add__(self, other: DraftSums) -> DraftSums:
        return DraftSums(
            self.drafted + other.drafted,
            self.accepted + other.accepted,
            self.num_drafts + other.num_drafts,
            self.goodput + other.goodput,
            self.rounds_s + other.rounds_s,
            self.plain_rounds_s + other.plain_rounds_s,
        )

    def since(self, before: DraftSums) -> DraftSums:
        return DraftSums(
            self.drafted - before.drafted,
            self.accepted - before.accepted,
            self.num_drafts - before.num_drafts,
            self.goodput - before.goodput,
            self.rounds_s - before.rounds_s,
            self.plain_rounds_s - before.plain_rounds_s,
        )

    @property
    def acceptance_ratio(self) -> float | None:
        """Accepted over drafted tokens; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def goodput_ratio(self) -> float | None:
        """Mean goodput of a block over plain decoding's; None where none was measured."""
        return self.goodput / self.num_drafts if self.num_drafts else None


NOTHING_DRAFTED = DraftSums()
