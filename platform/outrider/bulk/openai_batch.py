"""From one JSON object of the input to a Row: OpenAI batch lines, or plain columns.

A batch line is {"custom_id", "method", "url", "body"}; `kind` beside them is our extension, the
label that figures are broken down by. A column row has `prompt` or `messages`, and optionally
`id` or `custom_id`, `kind` and any sampling field. Nothing is ignored in silence: a field that is
not supported, or not known, is that row's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outrider.bulk.rows import ErrorCode, InvalidRowError, Row, bad, derived_seed
from outrider.config.schema import SamplingSettings
from outrider.core import SamplingParams
from outrider.openai.body import (
    MAX_KIND,
    refuse_rest,
    take_params,
    take_prompts,
    take_speculation,
)
from outrider.openai.call import Endpoint
from outrider.openai.fields import FieldError, text

URLS = {"/v1/chat/completions": Endpoint.CHAT, "/v1/completions": Endpoint.TEXT}
LIVE_ONLY: dict[str, tuple[object, ...]] = {  # what a batch can't do, and what asks for none of it
    "stream": (False,),
    "n": (1,),
    "response_format": ({"type": "text"},),
}
BATCH_KEYS = frozenset({"custom_id", "method", "url", "body", "kind"})


class RowReader:
    """Reads rows with the job's defaults. `seed` is the base of the seeds of rows without one."""

    def __init__(self, sampling: SamplingSettings, seed: int) -> None:
        self._seed = seed
        self._defaults = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            max_tokens=sampling.max_tokens,
            min_tokens=sampling.min_tokens,
        )

    def row(self, value: Mapping[str, Any], line: int, custom_id: str) -> Row:
        """The row, or `InvalidRowError` that names the field."""
        if not value.keys() & {"body", "url", "method"}:
            return self._column_row(value, line, custom_id)
        endpoint, body = _envelope(value)
        return self._build(body, line, custom_id, endpoint, _kind(value))

    def _column_row(self, value: Mapping[str, Any], line: int, custom_id: str) -> Row:
        body = {key: item for key, item in value.items() if item is not None}
        kind = _kind(body)
        for key in ("id", "custom_id", "kind"):
            body.pop(key, None)
        if ("prompt" in body) == ("messages" in body):
            message = "the row must have a prompt or messages (one of them), or be a batch request"
            raise InvalidRowError(ErrorCode.INVALID_ROW, message)
        endpoint = Endpoint.TEXT if "prompt" in body else Endpoint.CHAT
        return self._build(body, line, custom_id, endpoint, kind)

    def _build(
        self, body: Mapping[str, Any], line: int, custom_id: str, endpoint: Endpoint, kind: str
    ) -> Row:
        try:
            return self._read(body, line, custom_id, endpoint, kind)
        except FieldError as error:
            raise InvalidRowError(ErrorCode(error.code), str(error)) from error

    def _read(
        self, body: Mapping[str, Any], line: int, custom_id: str, endpoint: Endpoint, kind: str
    ) -> Row:
        left = {key: item for key, item in body.items() if item is not None}
        for label in ("model", "user"):  # one model runs the job; the name is not looked up
            if label in left:
                text(label, left.pop(label))
        _take_live_only(left)
        prompt = _one_prompt(take_prompts(left, endpoint))
        speculation = take_speculation(left)
        defaults = replace(self._defaults, seed=derived_seed(self._seed, custom_id))
        params = take_params(left, endpoint, defaults)
        refuse_rest(left)
        return Row(
            line=line,
            custom_id=custom_id,
            endpoint=endpoint,
            params=params,
            speculation=speculation,
            kind=kind,
            **prompt,
        )


def _envelope(value: Mapping[str, Any]) -> tuple[Endpoint, Mapping[str, Any]]:
    unknown = sorted(value.keys() - BATCH_KEYS)
    if unknown:
        message = f"unknown key {unknown[0]!r} beside custom_id, method, url and body"
        raise InvalidRowError(ErrorCode.INVALID_ROW, message)
    if value.get("method", "POST") != "POST":
        raise bad("method", "POST", value["method"])
    url = value.get("url")
    if not isinstance(url, str) or url not in URLS:
        raise bad("url", f"one of {', '.join(URLS)}", url, code=ErrorCode.UNKNOWN_URL)
    body = value.get("body")
    if not isinstance(body, dict):
        raise bad("body", "an object", body)
    return URLS[url], body


def _kind(value: Mapping[str, Any]) -> str:
    kind = value.get("kind")
    if kind is None:
        return ""
    if not isinstance(kind, str) or not kind.isprintable() or len(kind) > MAX_KIND:
        # It heads a row of figures.
        raise bad("kind", f"a printable label of at most {MAX_KIND} characters", kind)
    return str(kind)


def _one_prompt(taken: dict[str, Any]) -> dict[str, Any]:
    """A row has one prompt: text or token ids."""
    if "messages" in taken:
        return taken
    prompts = taken["prompts"]
    if len(prompts) > 1:
        raise bad("prompt", "a string or a list of token ids (one prompt a row)", list(prompts))
    prompt = prompts[0]
    return {"text": prompt} if isinstance(prompt, str) else {"token_ids": prompt}


def _take_live_only(left: dict[str, Any]) -> None:
    for name, neutral in LIVE_ONLY.items():
        value = left.pop(name, neutral[0])
        if value not in neutral:
            message = f"{name} is not supported (got {str(value)[:40]!r})"
            raise InvalidRowError(ErrorCode.UNSUPPORTED, message)
