"""What makes two runs the same: canonical JSON, its sha256, and the keys that differ."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from pathlib import PurePath
from typing import TypeAlias

from outrider.core import Fault

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"

ABSENT = object()


def plain(value: object) -> Plain:
    """`value` as JSON types: enums by value, dataclasses as mappings with their class as `kind`.

    The `kind` keeps two variants with equal fields apart, which `asdict` would not.
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case PurePath():
            return str(value)
        case Mapping():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case Set():
            return sorted((plain(item) for item in value), key=_dump)
        case Sequence() if not isinstance(value, bytes | bytearray):
            return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | _fields(value)
    raise Fault(f"a {type(value).__name__} has no canonical form and can't be fingerprinted")


def canonical(value: object) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, NaN refused with a ValueError."""
    return _dump(plain(value))


def fingerprint(value: object) -> str:
    """sha256 of the canonical JSON, in hex. Equal for equal settings in every process."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def differences(a: object, b: object) -> list[str]:
    """Dotted keys, sorted, whose values differ between `a` and `b` or that only one of them has."""
    mine, theirs = leaves(a), leaves(b)
    return sorted(
        key
        for key in mine.keys() | theirs.keys()
        if _text(mine.get(key, ABSENT)) != _text(theirs.get(key, ABSENT))
    )


def leaves(value: object) -> dict[str, Plain]:
    """Nested mappings and dataclasses as one level of dotted keys. Lists stay whole."""
    found: dict[str, Plain] = {}
    _collect(plain(value), "", found)
    return found


def flatten(value: object) -> dict[str, str]:
    """`leaves` as text, for a tracker's parameters: strings as they are, the rest as JSON."""
    return {
        key: leaf if isinstance(leaf, str) else _dump(leaf) for key, leaf in leaves(value).items()
    }


def _collect(value: Plain, prefix: str, found: dict[str, Plain]) -> None:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            _collect(item, f"{prefix}.{key}" if prefix else key, found)
    elif prefix:
        found[prefix] = value


def _fields(value: object) -> dict[str, Plain]:
    assert dataclasses.is_dataclass(value)
    return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}


def _text(value: object) -> str:
    return "" if value is ABSENT else _dump(value)


def _dump(value: object) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
