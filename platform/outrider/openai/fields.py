"""Checks of single request fields. Each returns the typed value or says what it must be."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

MAX_LOGPROBS = 20
SEED_BITS = 63
MAX_BIAS = 100.0
MAX_PENALTY = 2.0
MAX_SHOWN = 60  # characters of a client's value in a message, which is one line
MAX_ID_DIGITS = 18  # of a token id written as a string; longer ones int() may refuse

Check = Callable[[str, Any], Any]


class FieldCode(StrEnum):
    """Why a field was refused."""

    INVALID = "invalid_field"
    UNSUPPORTED = "unsupported"


class FieldError(Exception):
    """A request can't be meant: one line that names the field."""

    def __init__(self, code: FieldCode, param: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


def must_be(name: str, must: str, value: object) -> str:
    """The line that says what a field must be and what it was."""
    return f"{name} must be {must}, got {_cut(repr(value))}"


def _cut(shown: str) -> str:
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 3] + "..."


def bad(name: str, must: str, value: object) -> FieldError:
    return FieldError(FieldCode.INVALID, name, must_be(name, must, value))


def unsupported(name: str, why: str = "is not supported") -> FieldError:
    """`name` may be the client's own: it is shown in one line, as far as it goes."""
    shown = _cut(name if name and name.isprintable() else repr(name))
    return FieldError(FieldCode.UNSUPPORTED, shown, f"{shown} {why}")


def number(low: float, high: float, must: str, *, above: bool = False) -> Check:
    """A finite number in [low, high], or in (low, high] with `above`.

    It is compared as it came: NaN fails, and an integer may be too large for a float.
    """

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise bad(name, must, value)
        if not low <= value <= high or (above and value == low):
            raise bad(name, must, value)
        return float(value)

    return check


def integer(low: int, high: int | None, must: str) -> Check:
    """A whole number in [low, high]; 3.0 counts as 3 (Parquet columns with gaps are floats)."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad(name, must, value)
        if value < low or (high is not None and value > high):
            raise bad(name, must, value)
        return value

    return check


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise bad(name, "true or false", value)
    return value


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise bad(name, "a string", value)
    return value


def stops(name: str, value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(stop, str) and stop for stop in found):
        raise bad(name, "a string or a list of strings, none empty", value)
    return tuple(found)


def ids(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(_is_id(token) for token in value):
        raise bad(name, "a list of token ids", value)
    return tuple(value)


def biases(name: str, value: Any) -> dict[int, float]:
    """OpenAI's `logit_bias`: {"token id": -100..100}."""
    must = "an object of token ids and numbers from -100 to 100"
    if not isinstance(value, dict) or not all(_is_decimal(str(key)) for key in value):
        raise bad(name, must, value)
    one = number(-MAX_BIAS, MAX_BIAS, must)
    return {int(key): one(name, bias) for key, bias in value.items()}


def _is_decimal(key: str) -> bool:
    return len(key) <= MAX_ID_DIGITS and key.isdecimal()


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


PENALTY = number(-MAX_PENALTY, MAX_PENALTY, "a number from -2 to 2")
SAMPLING: dict[str, Check] = {
    "temperature": number(0.0, 100.0, "a number from 0 (greedy) to 100"),
    "top_p": number(0.0, 1.0, "a number above 0 and at most 1", above=True),
    "top_k": integer(0, None, "a whole number; 0 is off"),
    "min_p": number(0.0, 1.0, "a number from 0 to 1"),
    "seed": integer(-(2**SEED_BITS), 2**SEED_BITS - 1, "a whole number of 64 bits"),
    "max_tokens": integer(1, None, "a whole number, at least 1"),
    "max_completion_tokens": integer(1, None, "a whole number, at least 1"),
    "min_tokens": integer(0, None, "a whole number, at least 0"),
    "stop": stops,
    "stop_token_ids": ids,
    "ignore_eos": boolean,
    "presence_penalty": PENALTY,
    "frequency_penalty": PENALTY,
    "repetition_penalty": number(0.0, 100.0, "a number above 0", above=True),
    "logit_bias": biases,
}
"""Fields that mean the same for chat, completions and column rows."""
