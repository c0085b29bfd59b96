"""The evaluation set: a file of prompts, and its digest.

One JSON object a line: `id`, `kind` and `messages`; `language`, `temperature` (0 where it is not
said), `seed` (from the id where it is not said) and `max_tokens` are the prompt's own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.core import SamplingParams, UserError
from outrider.trial.case import Case

Types = tuple[type, ...]
REQUIRED: dict[str, Types] = {"id": (str,), "kind": (str,), "messages": (list,)}
OPTIONAL: dict[str, Types] = {
    "language": (str,),
    "temperature": (int, float),
    "seed": (int,),
    "max_tokens": (int,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What releases are measured on."""

    name: str  # of the file
    sha256: str
    cases: tuple[Case, ...]


def read_evaluation(path: Path, *, answer_tokens: int, key: str = "trial.evaluation") -> Evaluation:
    """Read the file. `answer_tokens`: most tokens of an answer.

    UserError names `key`, which the file was set by, the file and the line.
    """
    try:
        content = path.read_bytes()
        lines = content.decode().splitlines()
    except OSError as error:
        raise UserError(f"{key}: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{key}: {path} is not UTF-8") from error
    cases: dict[str, Case] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            case = _case(f"{key}: {path}:{number}", line, answer_tokens)
            if case.name in cases:
                raise UserError(f"{key}: {path}:{number}: id {case.name!r} is there")
            cases[case.name] = case
    if not cases:
        raise UserError(f"{key}: {path} has no prompts")
    digest = hashlib.sha256(content).hexdigest()
    return Evaluation(name=path.name, sha256=digest, cases=tuple(cases.values()))


def _case(where: str, line: str, answer_tokens: int) -> Case:
    try:
        row = _checked(json.loads(line))
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: {error}") from error
    return Case(
        name=row["id"],
        messages=tuple(row["messages"]),
        kind=row["kind"],
        language=row.get("language", ""),
        params=SamplingParams(
            temperature=float(row.get("temperature", 0.0)),
            seed=row.get("seed", _seed_of(row["id"])),
            max_tokens=min(answer_tokens, row.get("max_tokens", answer_tokens)),
        ),
    )


def _checked(row: Any) -> dict[str, Any]:
    """Raises ValueError for what is missing, unknown or of another type."""
    if not isinstance(row, dict):
        raise ValueError("expected an object with id, kind and messages")
    for key in REQUIRED:
        if key not in row:
            raise ValueError(f"there is no {key!r}")
    known = REQUIRED | OPTIONAL
    for key, value in row.items():
        if key not in known:
            raise ValueError(f"{key!r} is not known; there are {', '.join(known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ValueError(f"{key!r} can't be {value!r}")
    if row.get("temperature", 0) < 0 or row.get("max_tokens", 1) < 1:
        raise ValueError("temperature must be at least 0 and max_tokens at least 1")
    _check_messages(row["messages"])
    return row


def _check_messages(messages: list[Any]) -> None:
    texts = ("role", "content")
    for message in messages:
        if not isinstance(message, dict) or not all(
            isinstance(message.get(name), str) for name in texts
        ):
            raise ValueError("each of messages needs a role and a content, both text")
    if not messages:
        raise ValueError("messages is empty")


def _seed_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
