"""From a JSON body to a Call. Nothing is ignored in silence: a field is used or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outrider.core import SamplingParams, Speculation
from outrider.openai.call import Call, Endpoint, Prompt
from outrider.openai.constraint import take_constraint
from outrider.openai.fields import (
    MAX_LOGPROBS,
    SAMPLING,
    Check,
    FieldCode,
    FieldError,
    bad,
    boolean,
    ids,
    integer,
    text,
    unsupported,
)

ROLES = ("system", "developer", "user", "assistant")
LABELS = frozenset({"metadata", "safety_identifier", "prompt_cache_key", "service_tier"})
"""They name the caller or the price, and change no token."""
NEUTRAL: dict[str, tuple[object, ...]] = {  # values that ask for nothing
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "priority": (0,),
    "reasoning_effort": ("none",),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "use_beam_search": (False,),
    "verbosity": (),
    "web_search_options": (),
}
STREAM_OPTIONS = {"include_usage", "continuous_usage_stats", "include_obfuscation"}
COUNT = integer(0, MAX_LOGPROBS, f"a whole number from 0 to {MAX_LOGPROBS}")
LENGTH = integer(0, None, "a whole number, at least 0")
MAX_KIND = 100
MAX_USER = 512


def read_call(
    body: Mapping[str, Any],
    endpoint: Endpoint,
    *,
    call_id: str,
    defaults: SamplingParams,
    max_choices: int,
) -> Call:
    """The call, with `defaults` where the body is silent. `FieldError` names what is wrong.

    `max_choices`: most prompts times `n`.
    """
    try:
        return _read(body, endpoint, call_id, defaults, max_choices)
    except RecursionError as error:  # the parser's limit, met again where a value is quoted
        message = "the body is nested too deeply"
        raise FieldError(FieldCode.INVALID, None, message) from error


def _read(
    body: Mapping[str, Any],
    endpoint: Endpoint,
    call_id: str,
    defaults: SamplingParams,
    max_choices: int,
) -> Call:
    left = {key: item for key, item in body.items() if item is not None}
    stream = boolean("stream", left.pop("stream", False))
    params, seed = _take_params(left, endpoint, defaults)
    call = Call(
        call_id=call_id,
        endpoint=endpoint,
        model=text("model", left.pop("model")) if "model" in left else None,
        params=params,
        seed=seed,
        n=_take_n(left, max_choices),
        stream=stream,
        **_take_stream_options(left, stream=stream),
        speculation=take_speculation(left),
        constraint=take_constraint(left),
        user=_label("user", left.pop("user", None), MAX_USER),
        kind=_label("kind", left.pop("kind", None), MAX_KIND) or "",
        **take_prompts(left, endpoint),
    )
    if call.num_choices > max_choices:
        most = f"at most {max_choices} prompts times n"
        raise bad("prompt", most, call.num_choices)
    refuse_rest(left)
    return call


def take_prompts(left: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """`messages` of a chat, `prompts` of a completion."""
    name = "messages" if endpoint is Endpoint.CHAT else "prompt"
    if name not in left:
        raise FieldError(FieldCode.INVALID, name, f"{name} is missing")
    value = left.pop(name)
    if endpoint is Endpoint.CHAT:
        return {"messages": _messages(value)}
    return {"prompts": _prompts(value)}


def take_params(
    left: dict[str, Any], endpoint: Endpoint, defaults: SamplingParams
) -> SamplingParams:
    """Sampling fields; `seed` is the body's, or that of `defaults`."""
    given = {name: SAMPLING[name](name, left.pop(name)) for name in list(left) if name in SAMPLING}
    if "max_completion_tokens" in given:
        newer = given.pop("max_completion_tokens")
        if given.setdefault("max_tokens", newer) != newer:
            message = "max_tokens and max_completion_tokens differ: give one of them"
            raise FieldError(FieldCode.INVALID, "max_completion_tokens", message)
    params = replace(defaults, top_logprobs=_take_logprobs(left, endpoint), **given)
    if params.min_tokens > params.max_tokens:
        raise bad("min_tokens", f"at most max_tokens ({params.max_tokens})", params.min_tokens)
    return params


def take_speculation(left: dict[str, Any]) -> Speculation:
    value = left.pop("speculation", None)
    if value is None:
        return Speculation()
    if not isinstance(value, dict):
        raise bad("speculation", "an object with enabled and max_draft_length", value)
    checks: dict[str, Check] = {"enabled": boolean, "max_draft_length": LENGTH}
    for key in value:
        if key not in checks:
            raise unsupported(f"speculation.{key}", "is not known")
    given = {k: checks[k](f"speculation.{k}", v) for k, v in value.items() if v is not None}
    return Speculation(**given)


def refuse_rest(left: Mapping[str, Any]) -> None:
    """What nobody has taken asks for nothing, or is refused."""
    for name, value in left.items():
        if name in LABELS or (name in NEUTRAL and value in NEUTRAL[name]):
            continue
        word = "is not supported" if name in NEUTRAL else "is not known"
        raise unsupported(name, f"{word} (got {str(value)[:40]!r})")


def _take_params(
    left: dict[str, Any], endpoint: Endpoint, defaults: SamplingParams
) -> tuple[SamplingParams, int | None]:
    has_seed = "seed" in left
    params = take_params(left, endpoint, defaults)
    return replace(params, seed=0), params.seed if has_seed else None


def _take_n(left: dict[str, Any], max_choices: int) -> int:
    """`best_of` asks for nothing where it equals `n`: every choice that is made is given."""
    check = integer(1, max_choices, f"a whole number from 1 to {max_choices}")
    n: int = check("n", left.pop("n", 1))
    best_of = left.pop("best_of", n)
    if isinstance(best_of, bool) or best_of != n:
        raise unsupported("best_of", f"other than n is not supported (got {str(best_of)[:40]!r})")
    return n


def _take_stream_options(left: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    options = left.pop("stream_options", None)
    if options is None:
        return {}
    if not stream:
        raise FieldError(FieldCode.INVALID, "stream_options", "stream_options needs stream: true")
    if not isinstance(options, dict):
        raise bad("stream_options", "an object with include_usage", options)
    for key in options.keys() - STREAM_OPTIONS:
        raise unsupported(f"stream_options.{key}", "is not known")
    given = {
        name: boolean(f"stream_options.{name}", value)
        for name, value in options.items()
        if value is not None
    }
    if given.pop("include_obfuscation", False):
        raise unsupported("stream_options.include_obfuscation")
    return given


def _take_logprobs(left: dict[str, Any], endpoint: Endpoint) -> int | None:
    """Chat: `logprobs` true and `top_logprobs`. Completions: `logprobs` is the count itself."""
    wanted = left.pop("logprobs", None)
    if endpoint is Endpoint.TEXT and not isinstance(wanted, bool):
        return None if wanted is None else int(COUNT("logprobs", wanted))
    on = wanted is not None and boolean("logprobs", wanted)
    count = left.pop("top_logprobs", None)
    if count is not None and not on:
        message = "top_logprobs needs logprobs to be true"
        raise FieldError(FieldCode.INVALID, "top_logprobs", message)
    return int(COUNT("top_logprobs", count or 0)) if on else None


def _prompts(value: Any) -> tuple[Prompt, ...]:
    """A string, a list of token ids, or a list of either."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise bad("prompt", "a string, a list of token ids, or a list of either", value)
    if all(isinstance(item, int) for item in value):
        return (ids("prompt", value),)
    return tuple(_one_prompt(f"prompt[{index}]", item) for index, item in enumerate(value))


def _one_prompt(name: str, value: Any) -> Prompt:
    return value if isinstance(value, str) else ids(name, value)


def _messages(value: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise bad("messages", "a list with at least one message", value)
    return tuple(_message(f"messages[{index}]", item) for index, item in enumerate(value))


def _message(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise bad(name, "an object with role and content", value)
    for key, item in value.items():
        if key not in ("role", "content") and item is not None and item != []:
            raise unsupported(f"{name}.{key}")
    role = value.get("role")
    if role not in ROLES:
        raise bad(f"{name}.role", f"one of {', '.join(ROLES)}", role)
    # OpenAI's newer word for the same thing; templates know the older one.
    role = "system" if role == "developer" else role
    return {"role": role, "content": _content(f"{name}.content", value.get("content"))}


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


def _label(name: str, value: Any, longest: int) -> str | None:
    if value is None:
        return None
    if not text(name, value).isprintable() or len(value) > longest:
        raise bad(name, f"a printable label of at most {longest} characters", value)
    return str(value)
