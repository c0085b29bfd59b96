"""Structured output: `response_format` as OpenAI has it, `structured_outputs` as vLLM's server.

`regex` and `grammar` are also read beside them, where a client can't nest.
"""

from __future__ import annotations

import json
from typing import Any

from outrider.core import Constraint, ConstraintKind
from outrider.openai.fields import FieldCode, FieldError, bad, text, unsupported

EXTENSIONS = {"regex": ConstraintKind.REGEX, "grammar": ConstraintKind.GRAMMAR}
Found = list[tuple[str, Constraint]]
"""What was asked for, with the field that did."""


def take_constraint(left: dict[str, Any]) -> Constraint | None:
    """What the output must match; at most one of the fields may ask for something."""
    found: Found = [
        (name, _written(name, kind, left.pop(name)))
        for name, kind in EXTENSIONS.items()
        if name in left
    ]
    if "structured_outputs" in left:
        found += _structured_outputs(left.pop("structured_outputs"))
    if "response_format" in left:
        found += _response_format(left.pop("response_format"))
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        message = f"{names} can't be combined: give one of them"
        raise FieldError(FieldCode.INVALID, found[1][0], message)
    return found[0][1] if found else None


def _written(name: str, kind: ConstraintKind, value: Any) -> Constraint:
    if not text(name, value):
        raise bad(name, "a string that is not empty", value)
    return Constraint(kind, value)


def _structured_outputs(value: Any) -> Found:
    """`json` is a schema: an object, or one written as a string."""
    if not isinstance(value, dict):
        raise bad("structured_outputs", "an object with regex, grammar or json", value)
    found: Found = []
    for key, item in value.items():
        name = f"structured_outputs.{key}"
        if item is None or item is False:
            continue
        if key in EXTENSIONS:
            found.append((name, _written(name, EXTENSIONS[key], item)))
        elif key == "json_object" and item is True:
            found.append((name, Constraint(ConstraintKind.JSON_OBJECT)))
        elif key == "json":
            schema = item if isinstance(item, str) else _schema(name, item)
            found.append((name, _written(name, ConstraintKind.JSON_SCHEMA, schema)))
        else:
            raise unsupported(name)
    return found


def _response_format(value: Any) -> Found:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        must = "an object with type text, json_object or json_schema"
        raise bad("response_format", must, value)
    _refuse_others("response_format", value, {"type", kind} - {"text", "json_object"})
    if kind == "text":
        return []
    if kind == "json_object":
        return [("response_format", Constraint(ConstraintKind.JSON_OBJECT))]
    schema = _named_schema(value.get("json_schema"))
    return [("response_format", Constraint(ConstraintKind.JSON_SCHEMA, schema))]


def _named_schema(value: Any) -> str:
    name = "response_format.json_schema"
    if not isinstance(value, dict) or not isinstance(value.get("schema"), dict):
        raise bad(name, "an object with name and schema", value)
    _refuse_others(name, value, {"name", "schema", "strict", "description"})
    return _schema(f"{name}.schema", value["schema"])


def _schema(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise bad(name, "a JSON schema", value)
    return json.dumps(value, separators=(",", ":"))


def _refuse_others(name: str, value: dict[str, Any], known: set[str]) -> None:
    for key in sorted(value.keys() - known):
        if value[key] is not None:
            raise unsupported(f"{name}.{key}", "is not known")
