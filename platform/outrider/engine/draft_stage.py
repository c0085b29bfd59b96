"""Stage 1 of a round: offers, then lengths, then blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from outrider.core import Clock, Mode
from outrider.engine.breaker import is_in_share
from outrider.engine.drafters import DraftRow, Proposal, SafeDrafter
from outrider.engine.drafting import make_draft_row, permitted
from outrider.engine.kv_cache import BlockPool
from outrider.engine.round import Round, Turn
from outrider.engine.row import Row
from outrider.engine.speculation import Candidate, SpeculationPolicy


class DraftStage:
    """Gives each decoding row the block to be scored. It knows a row from `open` to `close`."""

    def __init__(
        self,
        drafter: SafeDrafter,
        policy: SpeculationPolicy,
        pool: BlockPool,
        clock: Clock,
        *,
        vocab_size: int,
        max_round_tokens: int,
    ) -> None:
        self._drafter = drafter
        self._policy = policy
        self._pool = pool
        self._clock = clock
        self._vocab_size = vocab_size
        self._max_round_tokens = max_round_tokens
        self._rows: dict[int, DraftRow] = {}
        self.mode = Mode.SPECULATIVE
        self._max_length: int | None = None  # of any row's draft, in tokens; None: the policy's
        self._probe_share: float | None = None  # of the rows: these draft though the mode is plain

    def set_control(self, mode: Mode, max_length: int | None, probe_share: float | None) -> None:
        """From the next round on."""
        self.mode, self._max_length = mode, max_length
        share = probe_share if mode is Mode.PLAIN else None
        self._probe_share = self._policy.probe_share = share

    def open(self, row: Row) -> None:
        shown = self._rows[row.row_id] = make_draft_row(row, self._vocab_size)
        shown.worth = partial(self._policy.worth, row.speculation)

    def close(self, row: Row) -> None:
        """Forget an ended row; the drafter may learn from its tokens."""
        del self._rows[row.row_id]
        # A plain request teaches nothing: it may be the baseline of the very same row.
        learns = row.request.speculation.enabled and row.error is None
        self._drafter.release(row.row_id, row.tokens if learns else ())

    def run(self, round_: Round) -> None:
        """Set the proposals of `round_`. Rows without a draft decode plainly."""
        started = self._clock.monotonic()
        decoding = [turn for turn in round_.turns if turn.decodes]
        self._choose_and_propose(round_, decoding)
        for failure in self._drafter.take_failures()[:1]:
            # No row's block carries it: whoever was left without a draft tells the breaker.
            for turn in decoding:
                if not turn.proposal.tokens and turn.proposal.failure is None:
                    turn.proposal = Proposal([], failure=failure)
        round_.draft_s = self._clock.monotonic() - started

    def _choose_and_propose(self, round_: Round, decoding: list[Turn]) -> None:
        limits = [self._limit(turn.row) for turn in decoding]
        if not any(limits):
            return
        rows = [self._shown(turn.row) for turn in decoding]
        for turn, offer in zip(decoding, self._drafter.offer(rows, limits), strict=True):
            turn.offer = offer
            round_.num_draft_steps = max(round_.num_draft_steps, offer.num_run)
        lengths = self._fit(decoding, self._choose(round_, decoding, limits))
        chosen = [turn for turn, length in zip(decoding, lengths, strict=True) if length > 0]
        if chosen:
            self._propose(round_, chosen, [length for length in lengths if length > 0])

    def _shown(self, row: Row) -> DraftRow:
        shown = self._rows[row.row_id]
        shown.may_look = self._policy.may_look(row.speculation)
        return shown

    def _limit(self, row: Row) -> int:
        allowed = row.request.speculation
        if not allowed.enabled or not self._may_draft(row):
            return 0
        limits = [self._policy.max_length, row.max_drafted]
        limits += [
            limit for limit in (allowed.max_draft_length, self._max_length) if limit is not None
        ]
        return max(0, min(limits))

    def _may_draft(self, row: Row) -> bool:
        if self.mode is Mode.SPECULATIVE:
            return True
        return self._probe_share is not None and is_in_share(row.row_id, self._probe_share)

    def _choose(self, round_: Round, decoding: list[Turn], limits: Sequence[int]) -> Sequence[int]:
        decision = self._policy.decide(
            [
                Candidate(turn.row.speculation, turn.offer, limit)
                for turn, limit in zip(decoding, limits, strict=True)
            ],
            base_rows=len(round_.turns),
            base_tokens=round_.num_tokens,
            budget=self._max_round_tokens - round_.num_tokens,
        )
        return decision.lengths

    def _fit(self, turns: list[Turn], lengths: Sequence[int]) -> list[int]:
        """Cut drafts to the free KV: a draft never preempts anyone."""
        fitted = []
        for turn, wanted in zip(turns, lengths, strict=True):
            table, committed = turn.row.table, len(turn.row.tokens)
            room = (len(table.blocks) + self._pool.num_free) * self._pool.block_size - committed
            fitted.append(min(wanted, room))
            self._pool.grow(table, committed + fitted[-1])
        return fitted

    def _propose(self, round_: Round, chosen: list[Turn], lengths: list[int]) -> None:
        drafted = self._drafter.propose([self._rows[turn.row.row_id] for turn in chosen], lengths)
        round_.num_draft_steps += drafted.num_steps
        for turn, proposal in zip(chosen, drafted.proposals, strict=True):
            turn.proposal = permitted(turn.row, proposal)
