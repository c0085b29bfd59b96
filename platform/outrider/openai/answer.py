"""Answers of both endpoints, whole and in chunks, as plain dicts ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outrider.core import Counters, Mode
from outrider.openai.call import Endpoint

LOGPROB_DIGITS = 6
LEAST_LOGPROB = -9999.0  # stands for minus infinity, which JSON has no word for


@dataclass(frozen=True, slots=True)
class TokenText:
    """An emitted token as a client reads it, with the likeliest others."""

    text: str
    raw: bytes
    logprob: float
    top: tuple[TokenText, ...] = ()
    token_id: int = 0  # no client sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every answer and chunk of one call begins with."""

    id: str
    endpoint: Endpoint
    created: int  # seconds since 1970
    model: str
    fingerprint: str

    @property
    def is_chat(self) -> bool:
        return self.endpoint is Endpoint.CHAT

    def whole(self, choices: Sequence[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        """The answer of a call that does not stream."""
        name = "chat.completion" if self.is_chat else "text_completion"
        return {**self._base(name), "choices": list(choices), "usage": usage}

    def chunk(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """One chunk of a stream; with `include_usage` its caller adds `usage`."""
        name = "chat.completion.chunk" if self.is_chat else "text_completion"
        return {**self._base(name), "choices": list(choices)}

    def _base(self, name: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


@dataclass(slots=True)
class ChoiceText:
    """Where a choice stands: text offsets of completions' logprobs count on."""

    index: int
    endpoint: Endpoint
    num_characters: int = 0
    has_begun: bool = False

    def whole(
        self, text: str, logprobs: Sequence[TokenText] | None, finish_reason: str | None
    ) -> dict[str, Any]:
        """The choice of an answer that does not stream."""
        said: dict[str, Any] = {"text": text}
        if self.endpoint is Endpoint.CHAT:
            said = {"message": {"role": "assistant", "content": text}}
        return self._choice(said, logprobs, finish_reason)

    def delta(
        self, text: str, logprobs: Sequence[TokenText] | None, finish_reason: str | None
    ) -> dict[str, Any]:
        """The choice of a chunk; a chat's first one carries the role."""
        said: dict[str, Any] = {"text": text}
        if self.endpoint is Endpoint.CHAT:
            role = {} if self.has_begun else {"role": "assistant"}
            said = {"delta": {**role, "content": text} if text or role else {}}
        self.has_begun = True
        return self._choice(said, logprobs, finish_reason)

    def _choice(
        self,
        said: dict[str, Any],
        logprobs: Sequence[TokenText] | None,
        finish_reason: str | None,
    ) -> dict[str, Any]:
        shown = None if logprobs is None else self._logprobs(logprobs)
        return {
            "index": self.index,
            **said,
            "logprobs": shown,
            "finish_reason": finish_reason,
        }

    def _logprobs(self, tokens: Sequence[TokenText]) -> dict[str, Any]:
        if self.endpoint is Endpoint.CHAT:
            return {
                "content": [
                    {**_token(token), "top_logprobs": [_token(other) for other in token.top]}
                    for token in tokens
                ]
            }
        return {
            "tokens": [token.text for token in tokens],
            "token_logprobs": [_rounded(token.logprob) for token in tokens],
            "top_logprobs": [
                {other.text: _rounded(other.logprob) for other in token.top} for token in tokens
            ],
            "text_offset": self._offsets(tokens),
        }

    def _offsets(self, tokens: Sequence[TokenText]) -> list[int]:
        offsets = []
        for token in tokens:
            offsets.append(self.num_characters)
            self.num_characters += len(token.text)
        return offsets


def usage(
    num_prompt_tokens: int,
    num_completion_tokens: int,
    counters: Counters | None = None,
    mode: Mode | None = None,
) -> dict[str, Any]:
    """`counters` and `mode` add the extension `speculation`."""
    counts: dict[str, Any] = {
        "prompt_tokens": num_prompt_tokens,
        "completion_tokens": num_completion_tokens,
        "total_tokens": num_prompt_tokens + num_completion_tokens,
    }
    if counters is not None and mode is not None:
        # Several choices share one prompt, which is counted once.
        cached = min(counters.num_cached_tokens, num_prompt_tokens)
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
        counts["speculation"] = {
            "rounds": counters.num_rounds,
            "drafted": counters.drafted,
            "accepted": counters.accepted,
            "mode": mode.value,
        }
    return counts


def _token(token: TokenText) -> dict[str, Any]:
    return {"token": token.text, "logprob": _rounded(token.logprob), "bytes": list(token.raw)}


def _rounded(value: float) -> float:
    return round(value, LOGPROB_DIGITS) if math.isfinite(value) else LEAST_LOGPROB
