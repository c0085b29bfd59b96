"""From one JSON object of the input to a Row: OpenAI batch lines, or plain columns.

A batch line is {"custom_id", "method", "url", "body"}; `kind` beside them is our extension, the
label that figures are broken down by. A column row has `prompt` or `messages`, and optionally
`id` or `custom_id`, `kind` and any sampling field. Nothing is ignored in silence: a field that is
not supported, or not known, is that row's error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from outrider.bulk.fields import MAX_LOGPROBS, SAMPLING, bad, boolean, ids, integer, text
from outrider.bulk.rows import Endpoint, ErrorCode, InvalidRowError, Row, derived_seed
from outrider.config.schema import SamplingSettings
from outrider.core import SamplingParams, Speculation

URLS = {"/v1/chat/completions": Endpoint.CHAT, "/v1/completions": Endpoint.TEXT}
ROLES = ("system", "user", "assistant")
LABELS = frozenset({"user", "metadata"})  # they name the caller and change no token
NEUTRAL: dict[str, tuple[object, ...]] = {  # values that ask for nothing
    "stream": (False,),
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none",),
    "response_format": ({"type": "text"},),
    "store": (False,),
}
BATCH_KEYS = frozenset({"custom_id", "method", "url", "body", "kind"})
COUNT = integer(0, MAX_LOGPROBS, f"a whole number from 0 to {MAX_LOGPROBS}")
LENGTH = integer(0, None, "a whole number, at least 0")
MAX_KIND = 100


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
        left = {key: item for key, item in body.items() if item is not None}
        if "model" in left:
            text("model", left.pop("model"))  # one model runs the job; the name is not looked up
        prompt = _take_prompt(left, endpoint)
        speculation = _take_speculation(left)
        params = self._take_params(left, endpoint, custom_id)
        _refuse_rest(left)
        return Row(
            line=line,
            custom_id=custom_id,
            endpoint=endpoint,
            params=params,
            speculation=speculation,
            kind=kind,
            **prompt,
        )

    def _take_params(
        self, left: dict[str, Any], endpoint: Endpoint, custom_id: str
    ) -> SamplingParams:
        given = {
            name: SAMPLING[name](name, left.pop(name)) for name in list(left) if name in SAMPLING
        }
        if "max_completion_tokens" in given:
            newer = given.pop("max_completion_tokens")
            if given.setdefault("max_tokens", newer) != newer:
                message = "max_tokens and max_completion_tokens differ: give one of them"
                raise InvalidRowError(ErrorCode.INVALID_FIELD, message)
        given.setdefault("seed", derived_seed(self._seed, custom_id))
        params = replace(self._defaults, top_logprobs=_take_logprobs(left, endpoint), **given)
        if params.min_tokens > params.max_tokens:
            raise bad("min_tokens", f"at most max_tokens ({params.max_tokens})", params.min_tokens)
        return params


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
    if not text("kind", kind).isprintable() or len(kind) > MAX_KIND:  # it heads a row of figures
        raise bad("kind", f"a printable label of at most {MAX_KIND} characters", kind)
    return str(kind)


def _take_prompt(left: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    name = "messages" if endpoint is Endpoint.CHAT else "prompt"
    if name not in left:
        raise InvalidRowError(ErrorCode.INVALID_FIELD, f"{name} is missing")
    value = left.pop(name)
    if endpoint is Endpoint.CHAT:
        return {"messages": _messages(value)}
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list) and value and isinstance(value[0], int):
        return {"token_ids": ids("prompt", value)}
    raise bad("prompt", "a string or a list of token ids (one prompt a row)", value)


def _messages(value: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise bad("messages", "a list with at least one message", value)
    return tuple(_message(f"messages[{index}]", item) for index, item in enumerate(value))


def _message(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise bad(name, "an object with role and content", value)
    unknown = sorted(key for key in value.keys() - {"role", "content"} if value[key] is not None)
    if unknown:
        raise InvalidRowError(ErrorCode.UNSUPPORTED, f"{name}.{unknown[0]} is not supported")
    if value.get("role") not in ROLES:
        raise bad(f"{name}.role", f"one of {', '.join(ROLES)}", value.get("role"))
    return {"role": value["role"], "content": _content(f"{name}.content", value.get("content"))}


def _content(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise bad(name, "a string or a list of text parts", value)
    for part in value:
        if (
            not isinstance(part, dict)
            or part.get("type") != "text"
            or part.keys() - {"type", "text"}
        ):
            raise bad(name, "a string or a list of text parts", part)
    return "".join(text(f"{name}.text", part.get("text")) for part in value)


def _take_logprobs(left: dict[str, Any], endpoint: Endpoint) -> int | None:
    """Chat: `logprobs` true and `top_logprobs`. Completions: `logprobs` is the count itself."""
    wanted = left.pop("logprobs", None)
    if endpoint is Endpoint.TEXT and not isinstance(wanted, bool):
        return None if wanted is None else int(COUNT("logprobs", wanted))
    on = wanted is not None and boolean("logprobs", wanted)
    count = left.pop("top_logprobs", None)
    if count is not None and not on:
        raise InvalidRowError(ErrorCode.INVALID_FIELD, "top_logprobs needs logprobs to be true")
    return int(COUNT("top_logprobs", count or 0)) if on else None


def _take_speculation(left: dict[str, Any]) -> Speculation:
    value = left.pop("speculation", None)
    if value is None:
        return Speculation()
    if not isinstance(value, dict):
        raise bad("speculation", "an object with enabled and max_draft_length", value)
    checks: dict[str, Callable[[str, Any], Any]] = {"enabled": boolean, "max_draft_length": LENGTH}
    for key in value:
        if key not in checks:
            raise InvalidRowError(ErrorCode.UNSUPPORTED, f"speculation.{key} is not known")
    given = {k: checks[k](f"speculation.{k}", v) for k, v in value.items() if v is not None}
    return Speculation(**given)


def _refuse_rest(left: Mapping[str, Any]) -> None:
    for name, value in left.items():
        if name in LABELS or (name in NEUTRAL and value in NEUTRAL[name]):
            continue
        word = "is not supported" if name in NEUTRAL else "is not known"
        raise InvalidRowError(ErrorCode.UNSUPPORTED, f"{name} {word} (got {str(value)[:40]!r})")
