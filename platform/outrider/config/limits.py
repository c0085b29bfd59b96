"""Which values make sense. One out of range is refused by its full key, before work starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from outrider.config.range import Range
from outrider.config.ranges import RANGES
from outrider.config.relations import RELATIONS
from outrider.core import UserError


def validate(settings: object, path: str = "") -> None:
    """Raise UserError for the first value, at any depth, that makes no sense."""
    for key, problem in problems(settings, path):
        raise UserError(f"{key}: {problem}")


def problems(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (full key, what is wrong) for every value that makes no sense."""
    ranges = RANGES.get(type(settings), {})
    for field in fields(settings):
        key, value = f"{path}.{field.name}".lstrip("."), getattr(settings, field.name)
        if is_dataclass(value):
            yield from problems(value, key)
        elif field.name in ranges:
            yield from _out_of_range(key, value, ranges[field.name])
    for name, problem in RELATIONS.get(type(settings), _none)(settings):
        yield f"{path}.{name}".lstrip("."), problem


def _out_of_range(key: str, value: Any, allowed: Range) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, tuple) else (value,):
        if item not in allowed:
            yield key, f"must be {allowed}, got {item:g}"


def _none(settings: object) -> Iterator[tuple[str, str]]:
    return iter(())
