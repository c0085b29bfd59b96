"""From a completion to a line of output.jsonl, the same bytes whenever and wherever it was made.

Ids come from the fingerprint and the custom_id, `created` is 0, and nothing that was measured is
in it (seconds, rounds, drafted tokens): two runs differ in those and agree in these bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outrider.bulk.rows import Endpoint, Row, RowError
from outrider.core import Completion, Tokenizer, TokenLogprob

LOGPROB_DIGITS = 6
LEAST_LOGPROB = -9999.0  # stands for minus infinity, which JSON has no word for


def json_line(value: object) -> bytes:
    """One line of JSON, text as it is; a lone surrogate, which UTF-8 can't hold, is escaped."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes answers in the name of one release of one model."""

    fingerprint: str
    model: str
    tokenizer: Tokenizer

    def answer(self, row: Row, completion: Completion) -> bytes:
        """A line of OpenAI's batch output format."""
        name = f"{self.fingerprint}\0{row.custom_id}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(name, digest_size=12).hexdigest()
        response = {
            "status_code": 200,
            "request_id": f"req_{key}",
            "body": self._body(key, row, completion),
        }
        return json_line(
            {
                "id": f"batch_req_{key}",
                "custom_id": row.custom_id,
                "response": response,
                "error": None,
            }
        )

    def _body(self, key: str, row: Row, completion: Completion) -> dict[str, Any]:
        is_chat = row.endpoint is Endpoint.CHAT
        num_emitted = len(completion.token_ids)
        return {
            "id": f"{'chatcmpl' if is_chat else 'cmpl'}-{key}",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": [self._choice(completion, is_chat=is_chat)],
            "usage": {
                "prompt_tokens": completion.num_prompt_tokens,
                "completion_tokens": num_emitted,
                "total_tokens": completion.num_prompt_tokens + num_emitted,
            },
        }

    def _choice(self, completion: Completion, *, is_chat: bool) -> dict[str, Any]:
        text: dict[str, Any] = {"text": completion.text}
        if is_chat:
            text = {"message": {"role": "assistant", "content": completion.text}}
        logprobs = None
        if completion.logprobs is not None:
            shape = self._chat_logprobs if is_chat else self._text_logprobs
            logprobs = shape(completion.logprobs)
        return {
            "index": 0,
            **text,
            "logprobs": logprobs,
            "finish_reason": str(completion.finish_reason),
        }

    def _chat_logprobs(self, logprobs: Sequence[TokenLogprob]) -> dict[str, Any]:
        return {
            "content": [
                {
                    **self._token(entry.token_id, entry.logprob),
                    "top_logprobs": [self._token(*pair) for pair in entry.top],
                }
                for entry in logprobs
            ]
        }

    def _token(self, token_id: int, logprob: float) -> dict[str, Any]:
        text = self.tokenizer.decode([token_id])
        return {"token": text, "logprob": _rounded(logprob), "bytes": list(text.encode())}

    def _text_logprobs(self, logprobs: Sequence[TokenLogprob]) -> dict[str, Any]:
        tokens = [self.tokenizer.decode([entry.token_id]) for entry in logprobs]
        offsets = [0]
        for token in tokens[:-1]:
            offsets.append(offsets[-1] + len(token))
        tops = [
            {self.tokenizer.decode([token]): _rounded(value) for token, value in entry.top}
            for entry in logprobs
        ]
        return {
            "tokens": tokens,
            "token_logprobs": [_rounded(entry.logprob) for entry in logprobs],
            "top_logprobs": tops,
            "text_offset": offsets[: len(tokens)],
        }


def failure(error: RowError) -> bytes:
    """A part's line for a row that failed; it becomes a line of errors.jsonl."""
    return json_line({"failed": error.to_dict()})


def _rounded(value: float) -> float:
    return round(value, LOGPROB_DIGITS) if math.isfinite(value) else LEAST_LOGPROB
