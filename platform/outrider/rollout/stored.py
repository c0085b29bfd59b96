"""The nouns of a rollout as JSON, as they are stored and posted, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any

from outrider.config.schema import GateSettings, OnStall, PlanSettings
from outrider.core import Fault
from outrider.rollout.phase import Phase
from outrider.rollout.status import Candidate, Move, Status
from outrider.rollout.verdict import Finding, Judgement, Verdict

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def text_of(noun: DataclassInstance) -> str:
    """Floats come back exactly: JSON writes the shortest digits that tell them."""
    return json.dumps(asdict(noun), default=_plain, ensure_ascii=False, separators=(",", ":"))


def parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Fault(f"what is stored of a rollout is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Fault("what is stored of a rollout is no JSON object")
    return found


def status_of(data: Mapping[str, Any]) -> Status:
    """Raises Fault for what another version wrote; so do the others here."""
    try:
        candidate = Candidate(**data["candidate"])
        return Status(**{**data, "phase": Phase(data["phase"]), "candidate": candidate})
    except (TypeError, ValueError, KeyError) as error:
        raise _foreign("status", error) from error


def move_of(data: Mapping[str, Any]) -> Move:
    try:
        told = {name: tuple(data[name]) for name in ("evidence", "differing")}
        return Move(**{**data, "phase": Phase(data["phase"]), **told})
    except (TypeError, ValueError, KeyError) as error:
        raise _foreign("move", error) from error


def judgement_of(data: Mapping[str, Any]) -> Judgement:
    try:
        return Judgement(
            findings=tuple(
                Finding(**{**found, "verdict": Verdict(found["verdict"])})
                for found in data["findings"]
            )
        )
    except (TypeError, ValueError, KeyError) as error:
        raise _foreign("judgement", error) from error


def plan_of_text(text: str) -> PlanSettings:
    data = parsed(text)
    try:
        return PlanSettings(
            **{
                **data,
                "weights": tuple(data["weights"]),
                "approvals": tuple(data["approvals"]),
                "on_stall": OnStall(data["on_stall"]),
            }
        )
    except (TypeError, ValueError, KeyError) as error:
        raise _foreign("plan", error) from error


def gates_of_text(text: str) -> GateSettings:
    try:
        return GateSettings(**parsed(text))
    except TypeError as error:
        raise _foreign("gates", error) from error


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"a {type(value).__name__} is not stored")


def _foreign(noun: str, error: Exception) -> Fault:
    return Fault(f"the stored {noun} of a rollout is of another version: {error}")
