"""What has become of one call: engine updates in, events out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from outrider.core import Completion, Counters, FinishReason, Mode, Tokenizer, Update
from outrider.openai.answer import TokenText
from outrider.openai.token_text import token_texts
from outrider.serving.messages import Begun, Ended, Event, Events, Piece
from outrider.serving.refusals import closed, failed


class Tally:
    """Of the choices `request_ids`, in order."""

    def __init__(
        self, request_ids: Iterable[str], tokenizer: Tokenizer, *, replica: str, mode: Mode
    ) -> None:
        self._open = {request_id: index for index, request_id in enumerate(request_ids)}
        self._tokenizer = tokenizer
        self._replica = replica
        self._mode = mode
        self._completions: list[Completion] = []
        self._has_begun = False
        self.is_over = False

    @property
    def open_ids(self) -> list[str]:
        """Choices that the engine still decodes."""
        return list(self._open)

    def read(self, updates: Iterable[Update], num_prompt_tokens: int) -> Events:
        """Events of these updates, those of one choice joined; the last of a call ends it."""
        pieces: dict[int, Piece] = {}
        for update in updates:
            index = self._open.get(update.request_id)
            if index is None:  # it has ended already
                continue
            done = update.completion
            if done is not None and done.finish_reason in (FinishReason.ERROR, FinishReason.ABORT):
                return self._fail(pieces, done, num_prompt_tokens)
            piece = self._piece(index, update)
            pieces[index] = _joined(pieces[index], piece) if index in pieces else piece
            if done is not None:
                del self._open[update.request_id]
                self._completions.append(done)
        return self._events(pieces, num_prompt_tokens)

    def whole(self, completions: Iterable[Completion], num_prompt_tokens: int) -> Events:
        """The same for choices that were not streamed."""
        updates = (
            Update(
                request_id=done.request_id,
                token_ids=done.token_ids,
                text=done.text,
                logprobs=done.logprobs or (),
                completion=done,
            )
            for done in completions
        )
        return self.read(updates, num_prompt_tokens)

    def _piece(self, index: int, update: Update) -> Piece:
        done = update.completion
        return Piece(
            index=index,
            text=update.text,
            token_ids=update.token_ids,
            logprobs=self._logprobs(update),
            finish_reason=None if done is None else done.finish_reason.value,
            stop_reason=None if done is None else done.stop_reason,
        )

    def _logprobs(self, update: Update) -> tuple[TokenText, ...] | None:
        return token_texts(update.logprobs, self._tokenizer) if update.logprobs else None

    def _events(self, pieces: dict[int, Piece], num_prompt_tokens: int) -> Events:
        events: list[Event] = []
        if pieces and not self._has_begun:
            self._has_begun = True
            events.append(
                Begun(replica=self._replica, mode=self._mode, num_prompt_tokens=num_prompt_tokens)
            )
        events.extend(pieces[index] for index in sorted(pieces))
        if not self._open:
            self.is_over = True
            events.append(self._ended(num_prompt_tokens))
        return tuple(events)

    def _ended(self, num_prompt_tokens: int) -> Ended:
        counters = Counters()
        for done in self._completions:
            counters += done.counters
        queues = [d.queue_s for d in self._completions if d.queue_s is not None]
        firsts = [d.first_token_s for d in self._completions if d.first_token_s is not None]
        return Ended(
            num_prompt_tokens=num_prompt_tokens,
            num_completion_tokens=sum(len(done.token_ids) for done in self._completions),
            counters=counters,
            mode=self._mode,
            queue_s=min(queues, default=None),
            first_token_s=min(firsts, default=None),
            total_s=max((done.total_s for done in self._completions), default=0.0),
        )

    def _fail(self, pieces: dict[int, Piece], done: Completion, num_prompt_tokens: int) -> Events:
        """One choice failed: the call fails, what came before it stands."""
        before = self._events(pieces, num_prompt_tokens)
        self.is_over = True
        if done.finish_reason is FinishReason.ABORT:
            refusal = closed("the engine is stopping; try again")
        else:
            refusal = failed(done.error or "the engine failed")
        return (*before, refusal)


def _joined(first: Piece, second: Piece) -> Piece:
    logprobs = (*(first.logprobs or ()), *(second.logprobs or ()))
    return replace(
        second,
        text=first.text + second.text,
        token_ids=first.token_ids + second.token_ids,
        logprobs=logprobs or None,
    )
