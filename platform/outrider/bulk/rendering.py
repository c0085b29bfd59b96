"""From a completion to a line of output.jsonl, the same bytes whenever and wherever it was made.

Ids come from the fingerprint and the custom_id, `created` is 0, and nothing that was measured is
in it (seconds, rounds, drafted tokens): two runs differ in those and agree in these bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from outrider.bulk.rows import Row, RowError
from outrider.core import Completion, Tokenizer
from outrider.openai.answer import ChoiceText, Head, usage
from outrider.openai.call import Endpoint
from outrider.openai.token_text import token_texts


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
        prefix = "chatcmpl" if row.endpoint is Endpoint.CHAT else "cmpl"
        head = Head(
            id=f"{prefix}-{key}",
            endpoint=row.endpoint,
            created=0,
            model=self.model,
            fingerprint=self.fingerprint,
        )
        choice = ChoiceText(0, row.endpoint).whole(
            completion.text,
            None
            if completion.logprobs is None
            else token_texts(completion.logprobs, self.tokenizer),
            str(completion.finish_reason),
        )
        return head.whole([choice], usage(completion.num_prompt_tokens, len(completion.token_ids)))


def failure(error: RowError) -> bytes:
    """A part's line for a row that failed; it becomes a line of errors.jsonl."""
    return json_line({"failed": error.to_dict()})
