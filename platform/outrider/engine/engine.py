"""The engine: one step is one round of speculative decoding over all running rows.

Plain decoding is the same step with every draft length at 0.
"""

from __future__ import annotations

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
from outrider.engine.block import NotFiniteError
from outrider.engine.calibration import calibrate
from outrider.engine.constraint import ConstraintCompiler, MatcherError, NoConstraints
from outrider.engine.draft_stage import DraftStage
from outrider.engine.drafters import SafeDrafter
from outrider.engine.drafters.grammar import forced_first
from outrider.engine.feature_reading import FeatureReading
from outrider.engine.intake import Intake
from outrider.engine.kv_cache import BlockPool
from outrider.engine.language_model import LanguageModel
from outrider.engine.ledger import Ledger
from outrider.engine.load import EngineLoad
from outrider.engine.round import Round, record, round_cost, row_outcome
from outrider.engine.round_record import TraceSink
from outrider.engine.row import Row
from outrider.engine.scheduler import Scheduler
from outrider.engine.score_stage import ScoreStage
from outrider.engine.speculation import SpeculationPolicy


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
        self._model = model
        self._policy = policy
        self._settings = settings
        self._clock = clock or SystemClock()
        self._trace = trace
        self._intake = Intake(
            model.shape, tokenizer, policy, settings, constraints or NoConstraints()
        )
        vocab_size = self._intake.vocab_size
        if constraints is not None:
            drafter = forced_first(drafter, vocab_size=vocab_size, clock=self._clock)
        self._pool = BlockPool(
            model.shape.num_blocks, model.shape.block_size, prefix_caching=settings.prefix_caching
        )
        self._scheduler = Scheduler(
            self._pool, max_rows=settings.max_rows, max_round_tokens=settings.max_round_tokens
        )
        self._drafting = DraftStage(
            drafter,
            policy,
            self._pool,
            self._clock,
            vocab_size=vocab_size,
            max_round_tokens=settings.max_round_tokens,
        )
        self._scoring = ScoreStage(model, self._clock, vocab_size=vocab_size)
        self._reading = FeatureReading(model, drafter, self._clock)
        self._rows: dict[str, Row] = {}
        self._updates: list[Update] = []
        self._ledger = Ledger()

    @property
    def counters(self) -> Counters:
        """Of the requests that have ended."""
        return self._ledger.ended

    def calibrate(self) -> None:
        """Run rounds of no request to learn what rounds cost. Before the first request only."""
        max_rows = self._settings.max_rows
        calibrate(self._model, self._pool, self._policy.cost, self._clock, max_rows=max_rows)

    # -- requests ---------------------------------------------------------------------------

    def check(self, request: Request) -> None:
        """Raise UserError where the request can never be served."""
        self._intake.check(request)

    def most_tokens(self, request: Request) -> int:
        """What `load().queued_tokens` grows by with this request. From any thread."""
        return self._intake.most_tokens(request)

    def submit(self, request: Request) -> None:
        """Queue a request; it joins a round as soon as there is room."""
        self.check(request)
        if request.request_id in self._rows:
            raise UserError(f"request_id: {request.request_id!r} is already in flight")
        row = self._intake.open(request, self._clock.monotonic())
        self._rows[request.request_id] = row
        self._drafting.open(row)
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
        round_ = Round.of(self._scheduler.schedule(), started)
        if round_.turns:
            self._drafting.run(round_)
            self._scoring.run(round_)
            self._reading.run(round_)
            self._verify(round_)
            self._commit(round_)
            self._learn(round_, self._clock.monotonic() - started)
        return self._collect(round_)

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
                self._ledger.enter(turn)
            if row.error is None:
                self._pool.index(row.table, row.tokens, row.num_computed)

    def _learn(self, round_: Round, seconds: float) -> None:
        """Tell the policy what the round gave and cost; leave evidence where tracing is on."""
        self._ledger.num_rounds += 1
        for turn in round_.turns:
            turn.row.counters.active_s += seconds / len(round_.turns)
        self._policy.observe(
            [row_outcome(turn) for turn in round_.turns if turn.decodes and turn.outcome],
            round_cost(round_, seconds),
        )
        if self._trace is not None:
            for turn in round_.turns:
                if turn.outcome is not None:
                    self._trace(record(turn, round_, self._ledger.num_rounds))

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

    def set_control(
        self,
        mode: Mode,
        max_draft_length: int | None = None,
        probe_share: float | None = None,
    ) -> None:
        """From the next round on. What was learnt about acceptance, cost and breakers stays.

        `probe_share`: of the rows, which draft all the same where the mode is plain.
        """
        self._drafting.set_control(mode, max_draft_length, probe_share)

    def load(self) -> EngineLoad:
        """What there is to do, in time linear in the running rows."""
        return EngineLoad(
            num_running=len(self._scheduler.running),
            num_waiting=len(self._scheduler.waiting),
            queued_tokens=self._scheduler.queued_tokens,
            num_free_blocks=self._pool.num_free,
            num_blocks=self._pool.num_blocks,
            num_rounds=self._ledger.num_rounds,
            drafts=self._ledger.drafts + self._policy.drafts,
        )

    def stats(self) -> dict[str, object]:
        """Counters of ended and running rows, load, and the policy's state, as plain data."""
        return {
            "num_rounds": self._ledger.num_rounds,
            "num_running": len(self._scheduler.running),
            "num_open_rows": sum(row.speculation.has_opened for row in self._rows.values()),
            "num_waiting": len(self._scheduler.waiting),
            "num_free_blocks": self._pool.num_free,
            "num_blocks": self._pool.num_blocks,
            "mode": self._drafting.mode.value,
            **self._ledger.to_dict(self._rows.values()),
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

    def _close(self, row: Row) -> None:
        self._scheduler.remove(row)
        del self._rows[row.request.request_id]
        self._drafting.close(row)
        self._updates.append(row.update(self._clock.monotonic()))
        self._ledger.close(row)
