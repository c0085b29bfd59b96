"""All decisions about speculation, as two calls per round: `decide` before it, `observe` after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from outrider.config.schema import BreakerSettings, DraftLengthSettings, LengthPolicy
from outrider.engine import breaker as breakers
from outrider.engine.acceptance import AcceptanceModel, RowAcceptance, describe_row
from outrider.engine.breaker import CLOSED, BreakerState, Observation, Phase
from outrider.engine.cost import CostModel
from outrider.engine.draft_length import (
    Base,
    LengthDecision,
    RowChance,
    assess,
    best_lengths,
    fixed_lengths,
)
from outrider.engine.drafters import NO_OFFER, Offer

UNLIMITED = 1 << 30

_EXPLORE_EVERY = 80  # rounds: a class that is held to be poor is tried in 1.25 % of them
_EXPLORE_LENGTH = 2  # tokens beyond what the rule chose
_PROBE_LENGTH = 4  # tokens a half-open trial drafts at least, whatever the rule thinks
_FASTEST = 1.5  # a round is never faster than its prediction by more than this factor


@dataclass(slots=True)
class RowState:
    """What is remembered about one row."""

    row_id: int
    acceptance: RowAcceptance = field(default_factory=dict)
    breaker: BreakerState = CLOSED

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
    draft_steps: int  # draft forwards run
    seconds: float  # of the whole served round


class SpeculationPolicy:
    """Draft lengths, learnt acceptance and cost, and the breakers of an engine and its rows."""

    def __init__(
        self, length: DraftLengthSettings, breaker: BreakerSettings, cost: CostModel
    ) -> None:
        self.acceptance = AcceptanceModel(length.prior_strength, length.discount)
        self.cost = cost
        self.breaker = CLOSED  # the engine's; each row has its own
        self.num_rounds = 0
        self._length = length
        self._breaker_settings = breaker
        self._exploration = Exploration()

    def row(self, row_id: int) -> RowState:
        """State for a new row; drop it when the row ends."""
        return RowState(row_id)

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
        limits = self._limits(candidates)
        chances = [
            self._chance(candidate, limit)
            for candidate, limit in zip(candidates, limits, strict=True)
        ]
        if self._length.policy is LengthPolicy.FIXED:
            lengths = fixed_lengths(limits, budget)
        else:
            lengths = best_lengths(chances, base, self.cost, budget)
            self._insist(candidates, limits, lengths, budget)
        return assess(chances, lengths, base, self.cost)

    def observe(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> None:
        """Learn from a round that ran: one outcome per decoding row, in any order."""
        self.num_rounds += 1
        pace = self._pace(outcomes, cost)
        for outcome in outcomes:
            self._learn_row(outcome, pace)
        self._advance_engine(outcomes, pace)
        self._exploration.observe(outcomes, self.num_rounds)
        self.cost.observe(cost.rows, cost.tokens, cost.draft_steps, cost.seconds)

    def to_dict(self) -> dict[str, object]:
        return {
            "num_rounds": self.num_rounds,
            "breaker": self.breaker.to_dict(),
            "acceptance": self.acceptance.to_dict(),
            "cost": self.cost.to_dict(),
        }

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

    def _chance(self, candidate: Candidate, limit: int) -> RowChance:
        row, offer, _ = candidate
        if limit == 0:
            return _NO_CHANCE
        usable = Offer(offer.name, offer.levels[:limit], offer.num_steps)
        return RowChance(self.acceptance.expect(row.acceptance, usable), offer.num_steps)

    def _insist(
        self,
        candidates: Sequence[Candidate],
        limits: Sequence[int],
        lengths: list[int],
        budget: int,
    ) -> None:
        """Lengthen what must be tried whatever the rule thinks: trials of breakers, and now and
        then the class that has gone untested for longest, so that early bad luck does not last."""
        for index, (row, _, _) in enumerate(candidates):
            if Phase.HALF_OPEN in (row.breaker.phase, self.breaker.phase):
                lengths[index] = max(lengths[index], min(limits[index], _PROBE_LENGTH))
        if self.breaker.phase is Phase.CLOSED and self._exploration.is_due(self.num_rounds):
            self._exploration.extend(candidates, limits, lengths, self.acceptance)
        while sum(lengths) > budget:
            lengths[lengths.index(max(lengths))] -= 1

    def _pace(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> _Pace:
        num_rows = max(len(outcomes), 1)
        num_drafted = sum(outcome.drafted for outcome in outcomes)
        predicted_s = self.cost.predict(cost.rows, cost.tokens, cost.draft_steps)
        base_s = self.cost.predict(cost.rows, max(cost.tokens - num_drafted, 1))
        return _Pace(
            num_rows=num_rows,
            num_drafted=num_drafted,
            plain_s=self.cost.predict(num_rows, num_rows),
            extra_s=max(predicted_s - base_s, 0.0),
            slowness=cost.seconds / predicted_s if cost.seconds > 0.0 else 1.0,
        )

    def _learn_row(self, outcome: RowOutcome, pace: _Pace) -> None:
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
            row.breaker = breakers.advance(
                row.breaker, seen, self._breaker_settings, self.num_rounds
            )

    def _advance_engine(self, outcomes: Sequence[RowOutcome], pace: _Pace) -> None:
        tried = [outcome for outcome in outcomes if outcome.drafted or outcome.failed]
        seen = pace.of_engine(outcomes, tried) if tried else None
        self.breaker = breakers.advance(self.breaker, seen, self._breaker_settings, self.num_rounds)


_NO_CHANCE = RowChance(())


@dataclass(frozen=True, slots=True)
class _Pace:
    """A round's seconds against plain decoding of the same rows, prefill apart."""

    num_rows: int
    num_drafted: int
    plain_s: float  # predicted, of a plain round of these rows
    extra_s: float  # predicted, that drafting and its scoring added
    slowness: float  # real over predicted seconds

    def of_row(self, outcome: RowOutcome) -> Observation:
        """Tokens a row got over those that its seconds would have given it plainly.

        Its seconds are its even share of a plain round and its share, by tokens drafted, of the
        extra ones; for one row alone this is the engine's ratio.
        """
        part = outcome.drafted / self.num_drafted if self.num_drafted else 0.0
        spent = 1.0 + self.num_rows * part * self.extra_s / self.plain_s
        bound = _FASTEST * (outcome.drafted + 1) / spent
        ratio = outcome.emitted / (spent * self.slowness)
        return Observation(min(ratio, bound), bound, float(outcome.failed))

    def of_engine(self, outcomes: Sequence[RowOutcome], tried: Sequence[RowOutcome]) -> Observation:
        spent = 1.0 + self.extra_s / self.plain_s
        mean_emitted = sum(outcome.emitted for outcome in outcomes) / self.num_rows
        bound = _FASTEST * (1.0 + self.num_drafted / self.num_rows) / spent
        ratio = mean_emitted / (spent * self.slowness)
        failed = sum(outcome.failed for outcome in tried) / len(tried)
        return Observation(min(ratio, bound), bound, failed)


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
