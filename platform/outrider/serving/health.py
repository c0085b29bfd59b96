"""Whether a release can be given traffic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """Of all replicas of a release together."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Condition:
    """How a release is, and where it failed, why."""

    health: Health
    message: str = ""
