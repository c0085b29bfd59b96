"""Structured output: `response_format` as OpenAI has it, `regex` and `grammar` as extensions."""

from __future__ import annotations

import json
from typing import Any

from outrider.core import Constraint, ConstraintKind
from outrider.openai.fields import FieldCode, FieldError, bad, text, unsupported

EXTENSIONS = {"regex": ConstraintKind.REGEX, "grammar": ConstraintKind.GRAMMAR}


def take_constraint(left: dict[str, Any]) -> Constraint | None:
    """What the output must match; at most one of the fields may ask for something."""
    found = [(name, _extension(name, left.pop(name))) for name in EXTENSIONS if name in left]
    if "response_format" in left:
        asked = _response_format(left.pop("response_format"))
        found += [("response_format", asked)] if asked else []
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        message = f"{names} can't be combined: give one of them"
        raise FieldError(FieldCode.INVALID, found[1][0], message)
    return found[0][1] if found else None


def _extension(name: str, value: Any) -> Constraint:
    if not text(name, value):
        raise bad(name, "a string that is not empty", value)
    return Constraint(EXTENSIONS[name], value)


def _response_format(value: Any) -> Constraint | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Constraint(ConstraintKind.JSON_OBJECT)
    if kind == "json_schema":
        return Constraint(ConstraintKind.JSON_SCHEMA, _schema(value.get("json_schema")))
    must = "an object with type text, json_object or json_schema"
    raise bad("response_format", must, value)


def _schema(value: Any) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("schema"), dict):
        name = "response_format.json_schema"
        raise bad(name, "an object with name and schema", value)
    for key in value.keys() - {"name", "schema", "strict", "description"}:
        raise unsupported(f"response_format.json_schema.{key}", "is not known")
    return json.dumps(value["schema"], separators=(",", ":"))
