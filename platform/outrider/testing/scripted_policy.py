"""Draft lengths by script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outrider.config.schema import BreakerSettings, DraftLengthSettings
from outrider.engine.cost import CostModel
from outrider.engine.draft_length import LengthDecision
from outrider.engine.speculation import (
    UNLIMITED,
    Candidate,
    RoundCost,
    RowOutcome,
    SpeculationPolicy,
)


class ScriptedPolicy(SpeculationPolicy):
    """Draft lengths by script: `length(round, row_id)`, cut to each row's limit and offer."""

    def __init__(self, length: Callable[[int, int], int], max_length: int = 64) -> None:
        super().__init__(DraftLengthSettings(max=max_length), BreakerSettings(), CostModel({}))
        self._script = length
        self._round = 0
        self.outcomes: list[list[RowOutcome]] = []  # observed, round by round
        self.costs: list[RoundCost] = []

    def decide(
        self,
        candidates: Sequence[Candidate],
        *,
        base_rows: int,
        base_tokens: int,
        budget: int = UNLIMITED,
    ) -> LengthDecision:
        lengths = []
        for candidate in candidates:
            wanted = self._script(self._round, candidate.row.row_id)
            lengths.append(min(wanted, candidate.limit, len(candidate.offer.levels), budget))
            budget -= lengths[-1]
        return LengthDecision(tuple(lengths), 0.0, 0.0, 0.0, 0.0)

    def observe(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> None:
        self._round += 1
        self.outcomes.append(list(outcomes))
        self.costs.append(cost)
        self.drafts += self._pace(outcomes, cost).sums(cost.seconds, outcomes)
