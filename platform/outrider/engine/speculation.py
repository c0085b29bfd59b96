"""All decisions about speculation, as two calls per round: `decide` before it, `observe` after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outrider.config.schema import BreakerSettings, DraftLengthSettings, LengthPolicy
from outrider.engine import breaker as breakers
from outrider.engine.acceptance import AcceptanceModel
from outrider.engine.breaker import CLOSED, Phase
from outrider.engine.cost import CostModel
from outrider.engine.cost_table import CostTable
from outrider.engine.draft_length import (
    Base,
    LengthDecision,
    Prices,
    RowChance,
    assess,
    best_lengths,
    fixed_lengths,
)
from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.engine.drafters import Offer
from outrider.engine.exploration import Exploration
from outrider.engine.language_model import ExactSizes, RoundSizes
from outrider.engine.looking import Looking
from outrider.engine.pace import Pace
from outrider.engine.row_outcome import Candidate, RoundCost, RowOutcome, RowState
from outrider.engine.sized_cost import SizedCost

__all__ = ["UNLIMITED", "Candidate", "RoundCost", "RowOutcome", "RowState", "SpeculationPolicy"]

UNLIMITED = 1 << 30

_OPTIMISM_EVERY = 16  # rounds: how often lengths are chosen as if unknown costs were low
_REFERENCE_EVERY = 16  # rounds: how often policy FIXED asks whether plain decoding is known
_KNOWN = 0.08  # standard deviation of log seconds below which a cost is known
_PROBE_LENGTH = 4  # tokens a half-open trial drafts at least, whatever the rule thinks
_NO_CHANCE = RowChance(())


class SpeculationPolicy:
    """Draft lengths, learnt acceptance and cost, and the breakers of an engine and its rows."""

    def __init__(
        self,
        length: DraftLengthSettings,
        breaker: BreakerSettings,
        cost: CostModel,
        *,
        sizes: RoundSizes | None = None,
    ) -> None:
        """`sizes`: the target model, where rounds are not computed in their exact size."""
        self.acceptance = AcceptanceModel(length.prior_strength, length.discount)
        self.cost = cost
        self.breaker = CLOSED  # the engine's; each row has its own
        self.num_rounds = 0
        self.drafts = NOTHING_DRAFTED  # all but tokens: what came of them is counted elsewhere
        self.probe_share: float | None = None  # of the rows, while only they draft
        self._length = length
        self._breaker_settings = breaker
        self._exploration = Exploration()
        self._looking = Looking()
        self._prices = Prices()
        self._sizes = sizes or ExactSizes()

    @property
    def max_length(self) -> int:
        """Tokens; the longest draft of a row in a round."""
        return self._length.max

    def row(self, row_id: int) -> RowState:
        """State for a new row; drop it when the row ends."""
        return RowState(row_id)

    def may_look(self, row: RowState) -> bool:
        """Whether a drafter may run draft forwards in the next round to make the row's offer."""
        if self._length.policy is LengthPolicy.FIXED:
            return True
        is_open = Phase.OPEN in (self.breaker.phase, row.breaker.phase)
        return not is_open and self._looking.is_due(self.num_rounds)

    def worth(self, row: RowState, offer: Offer) -> float:
        """Tokens that the best draft of this offer gains, less its price as of the last round."""
        limit = min(self._length.max, len(offer.levels))
        return self._prices.worth(self._chance(Candidate(row, offer, limit), limit))

    def decide(
        self,
        candidates: Sequence[Candidate],
        *,
        base_rows: int,
        base_tokens: int,
        budget: int = UNLIMITED,
    ) -> LengthDecision:
        """Draft lengths of the candidates, in order.

        `base_rows` and `base_tokens` are the round without drafts, prefill included; `budget` is
        the most draft tokens it may hold.
        """
        base = Base(base_rows, base_tokens)
        self._tick(candidates)
        self._prices = Prices.at(base, self._sized(self.cost.table))
        limits = self._limits(candidates)
        chances = [
            self._chance(candidate, limit)
            for candidate, limit in zip(candidates, limits, strict=True)
        ]
        if self._length.policy is LengthPolicy.FIXED:
            lengths = fixed_lengths(self._with_reference(limits, base), budget)
        else:
            hopeful = self.num_rounds % _OPTIMISM_EVERY == 0
            table = self.cost.optimistic() if hopeful else self.cost.table
            lengths = best_lengths(chances, base, self._sized(table), budget)
            self._insist(candidates, limits, lengths, budget)
        decision = assess(chances, lengths, base, self._sized(self.cost.table))
        if any(chance.num_run for chance in chances):
            self._judge_look(chances, decision, base, budget)
        return decision

    def observe(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> None:
        """Learn from a round that ran: one outcome per decoding row, in any order."""
        self.num_rounds += 1
        pace = self._pace(outcomes, cost)
        self.drafts += pace.sums(cost.seconds, outcomes)
        for outcome in outcomes:
            self._learn_row(outcome, pace)
        self._advance_engine(outcomes, pace)
        self._exploration.observe(outcomes, self.num_rounds)
        size = self._sizes.rounded(cost.tokens)
        self.cost.observe(
            cost.rows, size, cost.draft_steps, cost.seconds, changed=cost.was_unprepared
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "num_rounds": self.num_rounds,
            "breaker": self.breaker.to_dict(),
            "acceptance": self.acceptance.to_dict(),
            "cost": self.cost.to_dict(),
        }

    def _sized(self, table: CostTable) -> SizedCost:
        return SizedCost(table, self._sizes)

    def _tick(self, candidates: Sequence[Candidate]) -> None:
        """Breakers whose wait is over become half-open."""
        settings, round_ = self._breaker_settings, self.num_rounds
        self.breaker = breakers.advance(self.breaker, None, settings, round_)
        for row, _, _ in candidates:
            if row.breaker.phase is Phase.OPEN:
                row.breaker = breakers.advance(row.breaker, None, settings, round_)

    def _limits(self, candidates: Sequence[Candidate]) -> list[int]:
        if self.breaker.phase is Phase.OPEN:
            return [0] * len(candidates)
        limits = [
            0
            if row.breaker.phase is Phase.OPEN
            else max(min(limit, self._length.max, len(offer.levels)), 0)
            for row, offer, limit in candidates
        ]
        if self.breaker.phase is Phase.CLOSED:
            return limits
        able = [c.row.row_id for c, limit in zip(candidates, limits, strict=True) if limit]
        share = self._breaker_settings.probe_share
        chosen = breakers.probing_rows(able, self.breaker.epoch, share)
        pairs = zip(candidates, limits, strict=True)
        return [limit if c.row.row_id in chosen else 0 for c, limit in pairs]

    def _with_reference(self, limits: list[int], base: Base) -> list[int]:
        """Plain where the breaker does not know what plain decoding costs: with a fixed length it
        might never be seen. Twice at the start, then about once in hundreds of rounds."""
        if not self._breaker_settings.enabled or self.num_rounds % _REFERENCE_EVERY:
            return limits
        known = self.cost.doubt(base.rows, base.tokens) < _KNOWN
        return limits if known else [0] * len(limits)

    def _chance(self, candidate: Candidate, limit: int) -> RowChance:
        row, offer, _ = candidate
        if limit == 0:
            return _NO_CHANCE
        usable = Offer(offer.name, offer.levels[:limit], offer.num_steps)
        acceptance = self.acceptance.expect(row.acceptance, usable)
        return RowChance(
            acceptance,
            num_steps=offer.num_steps,
            num_run=offer.num_run,
            num_seen=offer.num_seen,
            num_first=offer.num_first,
        )

    def _judge_look(
        self, chances: Sequence[RowChance], decision: LengthDecision, base: Base, budget: int
    ) -> None:
        """What the round promises, against what it would if nobody had looked."""
        table = self._sized(self.cost.table)
        unseen = [_NO_CHANCE if chance.num_run else chance for chance in chances]
        otherwise = assess(unseen, best_lengths(unseen, base, table, budget), base, table)
        gain = math.log(decision.spec_goodput / otherwise.spec_goodput)
        self._looking.observe(gain, self.num_rounds)

    def _insist(
        self,
        candidates: Sequence[Candidate],
        limits: Sequence[int],
        lengths: list[int],
        budget: int,
    ) -> None:
        """Lengthen what must be tried whatever the rule thinks: trials of breakers and of the
        release, and now and then the class that has gone untested for longest, so that early bad
        luck does not last."""
        for index, (row, _, _) in enumerate(candidates):
            phases = (row.breaker.phase, self.breaker.phase)
            if self.probe_share is not None or Phase.HALF_OPEN in phases:
                lengths[index] = max(lengths[index], min(limits[index], _PROBE_LENGTH))
        if self.breaker.phase is Phase.CLOSED and self._exploration.is_due(self.num_rounds):
            self._exploration.extend(candidates, limits, lengths, self.acceptance)
        while sum(lengths) > budget:
            lengths[lengths.index(max(lengths))] -= 1

    def _pace(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> Pace:
        num_rows = max(len(outcomes), 1)
        num_drafted = sum(outcome.drafted for outcome in outcomes)
        # A change of size is not predicted: where drafting brings it about, it is drafting's cost.
        size, base = (
            self._sizes.rounded(cost.tokens),
            self._sizes.rounded(max(cost.tokens - num_drafted, 1)),
        )
        predicted_s = self.cost.predict(cost.rows, size, cost.draft_steps)
        base_s = self.cost.predict(cost.rows, base)
        return Pace(
            num_rows=num_rows,
            num_drafted=num_drafted,
            plain_s=self.cost.predict(num_rows, self._sizes.rounded(num_rows)),
            extra_s=max(predicted_s - base_s, 0.0),
            slowness=cost.seconds / predicted_s if cost.seconds > 0.0 else 1.0,
            was_unprepared=cost.was_unprepared,
        )

    def _learn_row(self, outcome: RowOutcome, pace: Pace) -> None:
        row = outcome.row
        if outcome.evaluated:
            self.acceptance.observe(
                row.acceptance,
                outcome.offer,
                outcome.evaluated,
                outcome.accepted,
                self.num_rounds,
            )
        if outcome.drafted or outcome.failed:
            seen = pace.of_row(outcome)
            if outcome.drafted:
                self.drafts += DraftSums(num_drafts=1, goodput=seen.ratio)
            row.breaker = breakers.advance(
                row.breaker, seen, self._breaker_settings, self.num_rounds
            )

    def _advance_engine(self, outcomes: Sequence[RowOutcome], pace: Pace) -> None:
        tried = [outcome for outcome in outcomes if outcome.drafted or outcome.failed]
        seen = pace.of_engine(outcomes, tried) if tried else None
        self.breaker = breakers.advance(self.breaker, seen, self._breaker_settings, self.num_rounds)
