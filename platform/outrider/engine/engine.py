"""The engine: one step is one round of speculative decoding over all running rows.

Plain decoding is the same step with every draft length at 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from outrider.config.schema import EngineSettings
from outrider.core import (
    Clock,
    Counters,
    FinishReason,
    Mode,
    Request,
    SystemClock,
    Tokenizer,
    Update,
    UserError,
)
from outrider.engine.admission import check_request, most_tokens
from outrider.engine.block import NotFiniteError, ScoredBlock
from outrider.engine.calibration import calibrate
from outrider.engine.constraint import ConstraintCompiler, MatcherError, NoConstraints
from outrider.engine.drafters import DraftRow, Proposal, SafeDrafter
from outrider.engine.drafters.grammar import forced_first
from outrider.engine.drafting import make_draft_row, permitted
from outrider.engine.kv_cache import BlockPool
from outrider.engine.language_model import LanguageModel
from outrider.engine.load import EngineLoad
from outrider.engine.round import (
    Round,
    Turn,
    count_drafted,
    count_turn,
    record,
    row_outcome,
    row_slice,
)
from outrider.engine.round_record import TraceSink
from outrider.engine.row import Row
from outrider.engine.sampling import TokenChooser
from outrider.engine.scheduler import Scheduler
from outrider.engine.speculation import Candidate, RoundCost, SpeculationPolicy


class Engine:
    """Not thread-safe: `Runner` gives it a thread of its own."""

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        drafter: SafeDrafter,
        policy: SpeculationPolicy,
        settings: EngineSettings,
        *,
        clock: Clock | None = None,
        trace: TraceSink | None = None,
        constraints: ConstraintCompiler | None = None,
    ) -> None:
        shape = model.shape
        self._model = model
        self._tokenizer = tokenizer
        self._policy = policy
        self._settings = settings
        self._clock = clock or SystemClock()
        self._trace = trace
        self._constraints = constraints or NoConstraints()
        # Logits may be padded beyond the tokenizer: a padded id must never be emitted.
        self.vocab_size = min(shape.vocab_size, max(tokenizer.vocabulary.values()) + 1)
        self._drafter = (
            drafter
            if constraints is None
            else forced_first(drafter, vocab_size=self.vocab_size, clock=self._clock)
        )
        self._pool = BlockPool(
            shape.num_blocks, shape.block_size, prefix_caching=settings.prefix_caching
        )
        self._scheduler = Scheduler(
            self._pool, max_rows=settings.max_rows, max_round_tokens=settings.max_round_tokens
        )
        self._rows: dict[str, Row] = {}
        self._draft_rows: dict[int, DraftRow] = {}
        self._updates: list[Update] = []
        self._next_row_id = 0
        self._mode = Mode.SPECULATIVE
        self._max_draft_length: int | None = None
        self._by_drafter: dict[str, Counters] = {}
        self.num_rounds = 0
        self.counters = Counters()

    def calibrate(self) -> None:
        """Run rounds of no request to learn what rounds cost. Before the first request only."""
        max_rows = self._settings.max_rows
        calibrate(self._model, self._pool, self._policy.cost, self._clock, max_rows=max_rows)

    # -- requests ---------------------------------------------------------------------------

    def check(self, request: Request) -> None:
        """Raise UserError where the request can never be served."""
        check_request(request, self._model.shape, self.vocab_size, self._tokenizer.eos_ids)
        if request.constraint is not None:
            self._constraints.check(request.constraint)

    def most_tokens(self, request: Request) -> int:
        """What `load().queued_tokens` grows by with this request. From any thread."""
        return most_tokens(request, self._model.shape)

    def submit(self, request: Request) -> None:
        """Queue a request; it joins a round as soon as there is room."""
        self.check(request)
        if request.request_id in self._rows:
            raise UserError(f"request_id: {request.request_id!r} is already in flight")
        row = self._open_row(request)
        self._rows[request.request_id] = row
        self._draft_rows[row.row_id] = make_draft_row(row, self.vocab_size)
        self._scheduler.add(row)

    def cancel(self, request_id: str, why: str | None = None) -> None:
        """End a request now; its blocks are free at once. Unknown ids have already ended."""
        row = self._rows.get(request_id)
        if row is not None:
            row.end(FinishReason.ABORT, why)
            self._close(row)

    def take_updates(self) -> list[Update]:
        """What is new and not yet told; `step` returns it too."""
        updates, self._updates = self._updates, []
        return updates

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work or bool(self._updates)

    # -- the step ---------------------------------------------------------------------------

    def step(self) -> list[Update]:
        """Schedule, draft, score, accept and resample, commit. Returns what is new."""
        started = self._clock.monotonic()
        round_ = Round([Turn(slot, slot.decodes) for slot in self._scheduler.schedule()])
        if round_.turns:
            self._draft(round_)
            self._score(round_)
            self._verify(round_)
            self._commit(round_)
            self._learn(round_, self._clock.monotonic() - started)
        return self._collect(round_)

    def _draft(self, round_: Round) -> None:
        """Stage 1: offers, then lengths, then blocks. Rows without a draft decode plainly."""
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
        limits = [self._draft_limit(turn.row) for turn in decoding]
        if not any(limits):
            return
        rows = [self._draft_rows[turn.row.row_id] for turn in decoding]
        for turn, offer in zip(decoding, self._drafter.offer(rows, limits), strict=True):
            turn.offer = offer
        decision = self._policy.decide(
            [
                Candidate(turn.row.speculation, turn.offer, limit)
                for turn, limit in zip(decoding, limits, strict=True)
            ],
            base_rows=len(round_.turns),
            base_tokens=round_.num_tokens,
            budget=self._settings.max_round_tokens - round_.num_tokens,
        )
        lengths = self._fit(decoding, decision.lengths)
        chosen = [turn for turn, length in zip(decoding, lengths, strict=True) if length > 0]
        if chosen:
            drafted = self._drafter.propose(
                [self._draft_rows[turn.row.row_id] for turn in chosen],
                [length for length in lengths if length > 0],
            )
            round_.num_draft_steps = drafted.num_steps
            for turn, proposal in zip(chosen, drafted.proposals, strict=True):
                turn.proposal = permitted(turn.row, proposal)

    def _draft_limit(self, row: Row) -> int:
        allowed = row.request.speculation
        if not allowed.enabled or self._mode is Mode.PLAIN:
            return 0
        limits = [self._policy.max_length, row.max_drafted]
        limits += [
            limit
            for limit in (allowed.max_draft_length, self._max_draft_length)
            if limit is not None
        ]
        return max(0, min(limits))

    def _fit(self, turns: list[Turn], lengths: Sequence[int]) -> list[int]:
        """Cut drafts to the free KV: a draft never preempts anyone."""
        fitted = []
        for turn, wanted in zip(turns, lengths, strict=True):
            table, committed = turn.row.table, len(turn.row.tokens)
            room = (len(table.blocks) + self._pool.num_free) * self._pool.block_size - committed
            fitted.append(min(wanted, room))
            self._pool.grow(table, committed + fitted[-1])
        return fitted

    def _score(self, round_: Round) -> None:
        """Stage 2: one ragged forward over committed and drafted tokens of all rows."""
        started = self._clock.monotonic()
        round_.was_unprepared = not self._model.is_prepared(round_.num_tokens)
        logits = self._model.forward([row_slice(turn) for turn in round_.turns])
        # bfloat16 has no numpy type; anything else is looked at in place.
        widened = logits.float() if logits.dtype is torch.bfloat16 else logits
        scores = widened.numpy(force=True)
        scores = scores[:, : self.vocab_size]
        best = scores.argmax(axis=-1)
        begin = 0
        for turn in round_.turns:
            if turn.slot.samples:
                end = begin + 1 + len(turn.proposal.tokens)
                turn.block = ScoredBlock(
                    turn.row, turn.proposal, scores[begin:end], best[begin:end]
                )
                begin = end
        round_.score_s = self._clock.monotonic() - started

    def _verify(self, round_: Round) -> None:
        """Stages 3 and 4. A row that can't go on fails alone."""
        for turn in round_.turns:
            if turn.block is None:
                continue
            try:
                turn.outcome = turn.block.verify()
            except NotFiniteError as error:
                turn.row.end(FinishReason.ERROR, f"the target gave NaN or infinity at {error}")
                self._pool.forget(turn.row.table)  # its KV may be what is wrong
            except MatcherError as error:
                turn.row.end(FinishReason.ERROR, str(error))

    def _commit(self, round_: Round) -> None:
        """Stage 5: append up to the first stop, roll the KV back to committed - 1."""
        for turn in round_.turns:
            row = turn.row
            row.num_computed += turn.slot.num_tokens
            if turn.outcome is not None and turn.block is not None:
                tokens = [*turn.proposal.tokens[: turn.outcome.accepted], turn.outcome.token]
                turn.emitted = row.commit(tokens, turn.block.logprobs(tokens))
                row.num_computed = len(row.tokens) - 1
                self._pool.trim(row.table, row.num_computed)
                count_turn(turn)
                if turn.proposal.tokens:
                    name = turn.offer.name
                    count_drafted(self._by_drafter.setdefault(name, Counters()), turn)
            if row.error is None:
                self._pool.index(row.table, row.tokens, row.num_computed)

    def _learn(self, round_: Round, seconds: float) -> None:
        """Tell the policy what the round gave and cost; leave evidence where tracing is on."""
        self.num_rounds += 1
        for turn in round_.turns:
            turn.row.counters.active_s += seconds / len(round_.turns)
        self._policy.observe(
            [row_outcome(turn) for turn in round_.turns if turn.decodes and turn.outcome],
            RoundCost(
                len(round_.turns),
                round_.num_tokens,
                round_.num_draft_steps,
                seconds,
                round_.was_unprepared,
            ),
        )
        if self._trace is not None:
            for turn in round_.turns:
                if turn.outcome is not None:
                    self._trace(record(turn, round_, self.num_rounds))

    def _collect(self, round_: Round) -> list[Update]:
        """Close what has ended and report what is new."""
        now = self._clock.monotonic()
        for turn in round_.turns:
            row = turn.row
            if turn.emitted and row.first_token_s is None:
                row.first_token_s = now - row.submitted_s
            if row.is_finished:
                self._close(row)
            elif turn.emitted and row.request.stream:
                self._updates.append(row.update(now))
        return self.take_updates()

    # -- state ------------------------------------------------------------------------------

    def set_control(self, mode: Mode, max_draft_length: int | None = None) -> None:
        """From the next round on. What was learnt about acceptance, cost and breakers stays."""
        self._mode, self._max_draft_length = mode, max_draft_length

    def load(self) -> EngineLoad:
        """What there is to do, in time linear in the running rows."""
        return EngineLoad(
            num_running=len(self._scheduler.running),
            num_waiting=len(self._scheduler.waiting),
            queued_tokens=self._scheduler.queued_tokens,
            num_free_blocks=self._pool.num_free,
            num_blocks=self._pool.num_blocks,
            num_rounds=self.num_rounds,
        )

    def stats(self) -> dict[str, object]:
        """Counters of ended and running rows, load, and the policy's state, as plain data."""
        total = Counters()
        for counters in (self.counters, *(row.counters for row in self._rows.values())):
            total += counters
        return {
            "num_rounds": self.num_rounds,
            "num_running": len(self._scheduler.running),
            "num_waiting": len(self._scheduler.waiting),
            "num_free_blocks": self._pool.num_free,
            "num_blocks": self._pool.num_blocks,
            "mode": self._mode.value,
            "counters": total.to_dict(),
            "by_drafter": {name: each.to_dict() for name, each in self._by_drafter.items()},
            "policy": self._policy.to_dict(),
        }

    def reset_prefix_cache(self) -> None:
        self._pool.forget_prefixes()

    def check_integrity(self) -> None:
        """Raise AssertionError unless rows, blocks and KV lengths agree. Between rounds only."""
        self._pool.check_integrity([row.table for row in self._rows.values()])
        if self._scheduler.queued_tokens != sum(row.num_left for row in self._rows.values()):
            raise AssertionError("the queued tokens differ from what the rows have left")
        for row in self._rows.values():
            if row.num_computed > len(row.tokens) - 1 and row in self._scheduler.running:
                raise AssertionError(f"row {row.row_id} has more KV than committed tokens - 1")

    def _open_row(self, request: Request) -> Row:
        self._next_row_id += 1
        eos_ids = self._tokenizer.eos_ids
        stop_ids = set(request.params.stop_token_ids)
        if not request.params.ignore_eos:
            stop_ids |= eos_ids
        return Row.open(
            self._next_row_id,
            request,
            TokenChooser(
                request.params,
                self._settings.rule.rule,
                # A tokenizer may know an EOS that the model cannot say.
                tuple(sorted(token for token in stop_ids if token < self.vocab_size)),
            ),
            eos_ids=eos_ids,
            context_length=self._model.shape.context_length,
            decode=self._tokenizer.decode,
            speculation=self._policy.row(self._next_row_id),
            now=self._clock.monotonic(),
            matcher=None
            if request.constraint is None
            else self._constraints.open(request.constraint),
        )

    def _close(self, row: Row) -> None:
        self._scheduler.remove(row)
        del self._rows[row.request.request_id], self._draft_rows[row.row_id]
        # A plain request teaches nothing: it may be the baseline of the very same row.
        learns = row.request.speculation.enabled and row.error is None
        self._drafter.release(row.row_id, row.tokens if learns else ())
        self._updates.append(row.update(self._clock.monotonic()))
        self.counters += row.counters
