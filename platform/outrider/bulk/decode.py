"""One shard through the engine: once, or twice when the plain baseline is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial

from outrider.bulk.figures import Arm, Figures
from outrider.bulk.live import Heart
from outrider.bulk.ports import ChatTokenizer, Decoder
from outrider.bulk.rows import ErrorCode, Row, RowError
from outrider.core import Completion, FinishReason, Request, Rule, Speculation, Update, UserError
from outrider.engine.margin import top2_margin
from outrider.engine.parity import Parity, compare

PLAIN = Speculation(enabled=False)


def pass_order(shard: int) -> tuple[Arm, Arm]:
    """A B, B A, A B, ...: neither arm always finds the machine as the other left it."""
    first, second = Arm.SPECULATIVE, Arm.PLAIN
    return (first, second) if shard % 2 == 0 else (second, first)


@dataclass(frozen=True, slots=True)
class Decoded:
    """One pass: every row's line is in exactly one of the two."""

    completions: dict[int, Completion] = field(default_factory=dict)
    errors: dict[int, RowError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardDecoder:
    """Decodes rows of a shard. Two shards may be in flight, each from its own thread."""

    decoder: Decoder
    tokenizer: ChatTokenizer
    heart: Heart
    rule: Rule
    near_tie: float  # logits

    def decode(self, rows: Sequence[Row], name: str, figures: Figures) -> Decoded:
        """Every row once. `name` is unique in the job; what was counted is added to `figures`."""
        return self._pass(rows, name, Arm.SPECULATIVE, figures)

    def decode_both(
        self, rows: Sequence[Row], name: str, order: Sequence[Arm], figures: Figures
    ) -> Decoded:
        """Both arms, one after the other from a cold prefix cache; the speculative one is kept."""
        decoded = {}
        for arm in order:
            self.decoder.reset_prefix_cache()
            decoded[arm] = self._pass(rows, f"{name}.{arm}", arm, figures)
        for row in rows:
            mine = decoded[Arm.SPECULATIVE].completions.get(row.line)
            plain = decoded[Arm.PLAIN].completions.get(row.line)
            if mine is not None and plain is not None:
                figures.parity += self._parity(row, plain, mine)
        return decoded[Arm.SPECULATIVE]

    def _pass(self, rows: Sequence[Row], name: str, arm: Arm, figures: Figures) -> Decoded:
        decoded = Decoded()
        waiting: dict[int, Future[Completion]] = {}
        listener = self.heart.listener(arm)
        try:
            for row in rows:
                taken = self._submit(row, f"{name}.{row.line}", arm, listener)
                if isinstance(taken, RowError):
                    decoded.errors[row.line] = taken
                else:
                    waiting[row.line] = taken
            wait(waiting.values())
        except BaseException:
            for line in waiting:
                self.decoder.cancel(f"{name}.{line}")
            raise
        for row in rows:
            if row.line in waiting:
                self._settle(row, waiting[row.line], decoded)
        for row in rows:
            if row.line in decoded.completions:
                figures.count(arm, row.kind, decoded.completions[row.line])
        return decoded

    def _submit(
        self, row: Row, request_id: str, arm: Arm, listener: Callable[[Update], None]
    ) -> Future[Completion] | RowError:
        try:
            request = Request(
                request_id=request_id,
                prompt_ids=prompt_ids(row, self.tokenizer),
                params=row.params,
                speculation=row.speculation if arm is Arm.SPECULATIVE else PLAIN,
                kind=row.kind,
            )
            return self.decoder.submit(request, listener)
        except UserError as error:
            return RowError(row.line, row.custom_id, ErrorCode.REFUSED, str(error))

    def _settle(self, row: Row, future: Future[Completion], decoded: Decoded) -> None:
        try:
            completion = future.result()
        except UserError as error:
            decoded.errors[row.line] = RowError(
                row.line, row.custom_id, ErrorCode.REFUSED, str(error)
            )
            return
        if completion.finish_reason is FinishReason.ERROR:
            self.decoder.stats()  # a dead engine raises its Fault here: no row is to blame
            message = completion.error or "the engine gave no reason"
            decoded.errors[row.line] = RowError(
                row.line, row.custom_id, ErrorCode.ENGINE_ERROR, message
            )
        elif completion.finish_reason is FinishReason.ABORT:
            message = "cut off by a stop"
            decoded.errors[row.line] = RowError(row.line, row.custom_id, ErrorCode.ABORTED, message)
        else:
            decoded.completions[row.line] = completion

    def _parity(self, row: Row, plain: Completion, mine: Completion) -> Parity:
        """Under rule ratio only greedy rows must agree; the others are not compared."""
        if self.rule is Rule.RATIO and not row.params.is_greedy:
            return Parity()
        request = Request(
            request_id=f"margin.{row.line}",
            prompt_ids=prompt_ids(row, self.tokenizer),
            params=row.params,
            speculation=PLAIN,
        )
        margin = partial(top2_margin, self.decoder.submit)
        found = compare(request, plain, mine, near_tie=self.near_tie, margin=margin)
        return Parity.of(found)


def prompt_ids(row: Row, tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """Token ids of the row's prompt. `UserError` where the text or the template refuses."""
    if row.token_ids is not None:
        return row.token_ids
    try:
        if row.messages is not None:
            return tuple(tokenizer.encode_chat(row.messages))
        return tuple(tokenizer.encode(row.text or ""))
    except (UnicodeError, TypeError) as error:  # a lone surrogate in the text
        raise UserError(f"the prompt can't be tokenised: {error}") from error
