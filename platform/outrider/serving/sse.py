"""Events of a call as bytes of a server-sent stream, and as one whole answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from outrider.openai.answer import ChoiceText, Head, TokenText, usage
from outrider.openai.call import Call
from outrider.openai.errors import error_object
from outrider.serving.messages import Begun, Ended, Event, Piece, Refusal

DONE = b"data: [DONE]\n\n"


def as_json(value: object) -> bytes:
    """Compact; text as it is, a lone surrogate escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def as_event(value: object) -> bytes:
    return b"data: " + as_json(value) + b"\n\n"


class StreamWriter:
    """Chunks of one call, in OpenAI's order: pieces, then usage where asked, then [DONE]."""

    def __init__(self, call: Call, head: Head) -> None:
        self._call = call
        self._head = head
        self._choices = [ChoiceText(i, call.endpoint) for i in range(call.num_choices)]
        self._num_prompt_tokens = self._num_tokens = 0

    def write(self, events: Iterable[Event]) -> bytes:
        return b"".join(self._write(event) for event in events)

    def _write(self, event: Event) -> bytes:
        if isinstance(event, Piece):
            return self._piece(event)
        if isinstance(event, Refusal):  # no [DONE] behind it: this is not a whole answer
            return as_event(refusal_object(event))
        if isinstance(event, Ended):
            return self._usage(event) + DONE
        self._num_prompt_tokens = event.num_prompt_tokens
        return b""

    def _piece(self, piece: Piece) -> bytes:
        self._num_tokens += piece.num_tokens
        state = self._choices[piece.index]
        says_nothing = not (piece.text or piece.logprobs or piece.finish_reason)
        if says_nothing and state.has_begun:  # its text is held back: it may begin a stop string
            return b""
        choice = state.delta(piece.text, piece.logprobs, piece.finish_reason)
        chunk = self._head.chunk([choice])
        if self._call.continuous_usage_stats:
            chunk["usage"] = self._usage_so_far()
        elif self._call.include_usage:
            chunk["usage"] = None
        return as_event(chunk)

    def _usage_so_far(self) -> dict[str, int]:
        return {
            "prompt_tokens": self._num_prompt_tokens,
            "completion_tokens": self._num_tokens,
            "total_tokens": self._num_prompt_tokens + self._num_tokens,
        }

    def _usage(self, ended: Ended) -> bytes:
        if not self._call.include_usage:
            return b""
        return as_event({**self._head.chunk([]), "usage": usage_of(ended)})


def whole_answer(call: Call, head: Head, events: Iterable[Event]) -> dict[str, Any]:
    """The answer of a call that did not stream and was not refused."""
    texts = [""] * call.num_choices
    logprobs: list[list[TokenText]] = [[] for _ in texts]
    reasons: list[str | None] = [None] * len(texts)
    counts: dict[str, Any] = {}
    for event in events:
        if isinstance(event, Piece):
            texts[event.index] += event.text
            logprobs[event.index].extend(event.logprobs or ())
            reasons[event.index] = event.finish_reason or reasons[event.index]
        elif isinstance(event, Ended):
            counts = usage_of(event)
    wants = call.params.top_logprobs is not None
    return head.whole(
        [
            ChoiceText(i, call.endpoint).whole(text, logprobs[i] if wants else None, reasons[i])
            for i, text in enumerate(texts)
        ],
        counts,
    )


def usage_of(ended: Ended) -> dict[str, Any]:
    return usage(ended.num_prompt_tokens, ended.num_completion_tokens, ended.counters, ended.mode)


def refusal_object(refusal: Refusal) -> dict[str, Any]:
    return error_object(refusal.message, refusal.kind, param=refusal.param, code=refusal.code)


def refusal_in(events: Iterable[Event]) -> Refusal | None:
    return next((event for event in events if isinstance(event, Refusal)), None)


def begun_in(events: Iterable[Event]) -> Begun | None:
    return next((event for event in events if isinstance(event, Begun)), None)
