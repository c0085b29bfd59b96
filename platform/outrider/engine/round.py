"""What passes through one round: a turn for each row, and the evidence it leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from outrider.engine.block import ScoredBlock
from outrider.engine.drafters import NO_OFFER, Offer, Proposal
from outrider.engine.round_record import RoundRecord
from outrider.engine.row import Row
from outrider.engine.scheduler import Slot
from outrider.engine.speculation import RoundCost, RowOutcome
from outrider.engine.verify import Outcome


@dataclass(slots=True)
class Turn:
    """One row's way through a round: slot, offer, proposal, scored block, outcome."""

    slot: Slot
    decodes: bool  # nothing but its last token was to be computed: it may draft
    offer: Offer = NO_OFFER
    proposal: Proposal = field(default_factory=lambda: Proposal([]))
    block: ScoredBlock | None = None
    outcome: Outcome | None = None
    emitted: int = 0

    @property
    def row(self) -> Row:
        return self.slot.row

    @property
    def inputs(self) -> list[int]:
        """What the target is fed, until the commit: committed tokens, then the drafted ones."""
        row = self.row
        committed = row.tokens[row.num_computed : row.num_computed + self.slot.num_tokens]
        return [*committed, *self.proposal.tokens]


@dataclass(slots=True)
class Round:
    """All turns of a round and what its stages cost."""

    turns: list[Turn]
    num_draft_steps: int = 0
    draft_s: float = 0.0
    score_s: float = 0.0
    was_unprepared: bool = False  # the model had to prepare for this size first

    @classmethod
    def of(cls, slots: Iterable[Slot], now: float) -> Round:
        """A round that begins now (seconds)."""
        turns = [Turn(slot, slot.decodes) for slot in slots]
        for turn in turns:
            turn.row.enter_round(now)
        return cls(turns)

    @property
    def num_tokens(self) -> int:
        return sum(turn.slot.num_tokens + len(turn.proposal.tokens) for turn in self.turns)


def row_outcome(turn: Turn) -> RowOutcome:
    """What the policy learns from a row that decoded."""
    outcome = turn.outcome
    assert outcome is not None
    return RowOutcome(
        row=turn.row.speculation,
        offer=turn.offer,
        drafted=len(turn.proposal.tokens),
        evaluated=outcome.evaluated,
        accepted=outcome.accepted,
        emitted=turn.emitted,
        failed=turn.proposal.failure is not None,
    )


def round_cost(round_: Round, seconds: float) -> RoundCost:
    """What the policy learns of a round that took `seconds`, drafting to commit."""
    return RoundCost(
        len(round_.turns),
        round_.num_tokens,
        round_.num_draft_steps,
        seconds,
        round_.was_unprepared,
    )


def record(turn: Turn, round_: Round, number: int) -> RoundRecord:
    row, proposal, outcome = turn.row, turn.proposal, turn.outcome
    assert outcome is not None
    assert turn.block is not None
    drafted = proposal.tokens
    q = (
        [1.0] * len(drafted)
        if proposal.q is None
        else [float(proposal.q[i, token]) for i, token in enumerate(drafted)]
    )
    return RoundRecord(
        request_id=row.request.request_id,
        round=number,
        num_rows=len(round_.turns),
        drafter=turn.offer.name,
        drafted=tuple(drafted),
        q=tuple(q),
        draft_s=round_.draft_s,
        failure=proposal.failure,
        p=turn.block.raw_probabilities(),
        score_s=round_.score_s,
        accepted=outcome.accepted,
        evaluated=outcome.evaluated,
        uniforms=outcome.uniforms,
        token=outcome.token,
        resampled=outcome.evaluated > outcome.accepted,
        length_before=len(row.tokens) - turn.emitted,
        length_after=len(row.tokens),
        kv_length_after=row.num_computed,
        stop_reason=None if row.stop is None else row.stop.reason.value,
    )
