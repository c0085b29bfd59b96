"""Plain mappings -> frozen dataclasses, strictly: an unknown, missing or wrong key is named."""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from outrider.core import UserError

T = TypeVar("T")

UNSET = "???"  # OmegaConf's mark of a value that the user must give


def typed(cls: type[T], data: object, path: str = "") -> T:
    """Build `cls` from `data`. `path` is the key of `data` in the whole configuration.

    Raises UserError for the first key that is unknown, missing or of the wrong type.
    """
    if not isinstance(data, Mapping):
        raise UserError(f"{path or 'the configuration'}: expected keys under it, got {data!r}")
    hints = typing.get_type_hints(cls)
    known = [field.name for field in _fields(cls)]
    for name in data:
        if name not in known:
            raise UserError(f"{_join(path, str(name))}: no such key{suggest(str(name), known)}")
    given = {
        field.name: _value(hints[field.name], data[field.name], _join(path, field.name))
        for field in _fields(cls)
        if _is_given(field, data, _join(path, field.name))
    }
    return cls(**given)


def keys(cls: type, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield (full key, type) of every key under `cls`, sections included, in order."""
    hints = typing.get_type_hints(cls)
    for field in _fields(cls):
        key, hint = _join(path, field.name), _without_none(hints[field.name])
        yield key, hint
        if isinstance(hint, type) and is_dataclass(hint):
            yield from keys(hint, key)


def plain(value: object) -> Any:
    """Dataclasses -> what YAML and JSON can hold; enums become their values."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def suggest(name: str, known: Collection[str]) -> str:
    """Return '; did you mean X?', or the choices where nothing is close and they are few."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are {', '.join(sorted(known))}" if len(known) <= MOST_LISTED else ""


def choose(name: str, choices: Collection[str]) -> str:
    """Return '[did you mean X? ]choose from X, Y, Z'."""
    close = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}choose from {', '.join(choices)}"


MOST_LISTED = 20  # names that still fit one readable line


def _is_given(field: Field[Any], data: Mapping[Any, object], key: str) -> bool:
    value = data.get(field.name, UNSET)
    if value != UNSET:
        return True
    is_required = field.default is MISSING and field.default_factory is MISSING
    if is_required or field.name in data:
        raise UserError(f"{key} is missing: give {key}=...")
    return False


def _value(hint: Any, value: object, key: str) -> object:
    if value is None:
        if type(None) in typing.get_args(hint):
            return None
        raise UserError(f"{key}: expected {_noun(hint)}, got null")
    hint = _without_none(hint)
    if typing.get_origin(hint) is tuple:
        return _items(typing.get_args(hint)[0], value, key)
    if is_dataclass(hint):
        return typed(typing.cast("type[Any]", hint), value, key)
    if issubclass(hint, Enum):
        return _member(hint, value, key)
    converted = SCALARS[hint](value)
    if converted is None:
        raise UserError(f"{key}: expected {_noun(hint)}, got {value!r}")
    return converted


def _items(hint: Any, value: object, key: str) -> tuple[object, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, typing.Iterable):
        raise UserError(f"{key}: expected a list like [1,2], got {value!r}")
    return tuple(_value(hint, item, f"{key}[{index}]") for index, item in enumerate(value))


def _member(cls: type[Enum], value: object, key: str) -> Enum:
    """By value or by name, in any case: people type bfloat16, BFLOAT16 and Bfloat16."""
    wanted = str(value).lower()
    for member in cls:
        if wanted in (str(member.value).lower(), member.name.lower()):
            return member
    choices = [str(member.value) for member in cls]
    raise UserError(f"{key}: unknown value {value!r}; {choose(wanted, choices)}")


def _text(value: object) -> str | None:
    """`input=2024` is a file name that YAML took for a number; true and false stay refused."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


SCALARS: dict[type, Callable[[object], object | None]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _flag,
}
NOUNS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _noun(hint: Any) -> str:
    return NOUNS.get(_without_none(hint), "a value")


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(hint) if arg is not type(None))
    return hint


def _fields(cls: type) -> tuple[Field[Any], ...]:
    return fields(cls)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
