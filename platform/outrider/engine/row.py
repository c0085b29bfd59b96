"""One request while it is decoded: its tokens, its KV, where it stops. Stage 5 lives here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider.core import Completion, Counters, FinishReason, Request, TokenLogprob, Update
from outrider.engine.constraint import Matcher
from outrider.engine.kv_cache import BlockTable
from outrider.engine.sampling import History, TokenChooser
from outrider.engine.speculation import RowState
from outrider.engine.text import TextStream, find_stop, num_safe

Decode = Callable[[list[int]], str]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a row ended, and how much of its text stands (None: all but a final EOS)."""

    reason: FinishReason
    cause: str | int | None = None
    text_length: int | None = None


@dataclass(slots=True, eq=False)  # a row is itself: lists of rows are searched every round
class Row:
    """Between rounds `num_computed` is len(tokens) - 1 once the prompt has been computed."""

    row_id: int
    request: Request
    chooser: TokenChooser
    eos_ids: frozenset[int]
    limit: int  # most tokens the row may hold, prompt included
    decode: Decode
    speculation: RowState
    submitted_s: float
    tokens: list[int] = field(default_factory=list)
    num_computed: int = 0
    table: BlockTable = field(default_factory=BlockTable)
    history: History = field(default_factory=History)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    stop: Stop | None = None
    error: str | None = None
    queue_s: float | None = None  # from submit to the first round; None: it was in none
    first_token_s: float | None = None
    stream: TextStream | None = None
    matcher: Matcher | None = None  # where the request has a constraint
    num_sent_tokens: int = 0
    num_sent_characters: int = 0

    @classmethod
    def open(
        cls,
        row_id: int,
        request: Request,
        chooser: TokenChooser,
        *,
        eos_ids: frozenset[int],
        context_length: int,
        decode: Decode,
        speculation: RowState,
        now: float,
        matcher: Matcher | None = None,
    ) -> Row:
        """A row at its beginning; max_tokens is clipped at the context limit."""
        prompt = request.prompt_ids
        needs_text = request.stream or bool(request.params.stop)
        return cls(
            row_id=row_id,
            request=request,
            chooser=chooser,
            eos_ids=eos_ids,
            limit=min(len(prompt) + request.params.max_tokens, context_length),
            decode=decode,
            speculation=speculation,
            submitted_s=now,
            tokens=list(prompt),
            history=History(prompt=frozenset(prompt)),
            stream=TextStream(decode) if needs_text else None,
            matcher=matcher,
        )

    @property
    def num_prompt(self) -> int:
        return len(self.request.prompt_ids)

    @property
    def output_ids(self) -> list[int]:
        return self.tokens[self.num_prompt :]

    @property
    def num_pending(self) -> int:
        """Committed tokens whose KV is not there yet; 1 when decoding."""
        return len(self.tokens) - self.num_computed

    @property
    def num_left(self) -> int:
        """Tokens without KV of the longest the row may become: prompt and output."""
        return self.limit - self.num_computed

    @property
    def max_drafted(self) -> int:
        """Longest draft that could all be emitted with the token after it."""
        return self.limit - len(self.tokens) - 1

    @property
    def is_finished(self) -> bool:
        return self.stop is not None

    def commit(self, tokens: Sequence[int], logprobs: Sequence[TokenLogprob]) -> int:
        """Append tokens up to the first stop; return how many were kept."""
        for index, token in enumerate(tokens):
            self.tokens.append(token)
            self.history.push(token)
            if self.matcher is not None:
                self.matcher.commit(token)
            if logprobs:
                self.logprobs.append(logprobs[index])
            self.stop = self._find_stop(token)
            if self.stop is not None:
                return index + 1
        return len(tokens)

    def enter_round(self, now: float) -> None:
        """It takes part in a round that begins now: the first time, its waiting is over."""
        if self.queue_s is None:
            self.queue_s = now - self.submitted_s

    def end(self, reason: FinishReason, error: str | None = None) -> None:
        """End the row for a reason of the engine's: cancelled or failed."""
        self.stop = Stop(reason)
        self.error = error

    def restart(self) -> None:
        """Forget the KV (preemption); tokens and noise positions stay, so the output does too."""
        self.num_computed = 0
        self.counters.num_preemptions += 1

    def update(self, now: float) -> Update:
        """What is new since the last update; carries the completion once the row has ended."""
        completion = self._completion(now) if self.is_finished else None
        ids = tuple(self.output_ids[self.num_sent_tokens :])
        new_logprobs = tuple(self.logprobs[self.num_sent_tokens :])
        text = self._new_text(completion)
        self.num_sent_tokens += len(ids)
        self.num_sent_characters += len(text)
        return Update(
            request_id=self.request.request_id,
            token_ids=ids,
            text=text,
            logprobs=new_logprobs,
            completion=completion,
        )

    def _find_stop(self, token: int) -> Stop | None:
        params = self.request.params
        is_eos = token in self.eos_ids and not params.ignore_eos
        if is_eos or token in params.stop_token_ids:
            # The text ends before the token that said stop.
            return Stop(FinishReason.STOP, None if is_eos else token)
        matched = self._find_stop_string(token)
        if matched is not None:
            return matched
        return Stop(FinishReason.LENGTH) if len(self.tokens) >= self.limit else None

    def _find_stop_string(self, token: int) -> Stop | None:
        if self.stream is None:
            return None
        params = self.request.params
        scanned = len(self.stream.seen)
        self.stream.push(token)
        if not params.stop or self.history.num_output < params.min_tokens:
            return None
        found = find_stop(self.stream.seen, params.stop, scanned)
        return Stop(FinishReason.STOP, found[1], found[0]) if found else None

    def _new_text(self, completion: Completion | None) -> str:
        if completion is not None:
            return completion.text[self.num_sent_characters :]
        if self.stream is None:
            return ""
        safe = num_safe(self.stream.text, self.request.params.stop)
        return self.stream.text[self.num_sent_characters : safe]

    def _text(self) -> str:
        assert self.stop is not None
        if self.stream is None:
            return self.decode(self._visible_ids())
        if self.stop.text_length is not None:
            return self.stream.seen[: self.stop.text_length]
        self.stream.flush()
        return self.stream.text

    def _visible_ids(self) -> list[int]:
        """Output ids without the EOS or stop id that ended the row."""
        assert self.stop is not None
        ids = self.output_ids
        ended_by_id = self.stop.reason is FinishReason.STOP and not isinstance(self.stop.cause, str)
        return ids[:-1] if ended_by_id else ids

    def _completion(self, now: float) -> Completion:
        assert self.stop is not None
        wants_logprobs = self.request.params.top_logprobs is not None
        return Completion(
            request_id=self.request.request_id,
            token_ids=tuple(self.output_ids),
            text=self._text(),
            finish_reason=self.stop.reason,
            stop_reason=self.stop.cause,
            logprobs=tuple(self.logprobs) if wants_logprobs else None,
            error=self.error,
            num_prompt_tokens=self.num_prompt,
            counters=self.counters,
            queue_s=self.queue_s,
            first_token_s=self.first_token_s,
            total_s=now - self.submitted_s,
        )
