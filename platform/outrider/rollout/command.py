"""What an operator asks of a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verb(StrEnum):
    """What is asked."""

    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    PROMOTE = "promote"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Who asked for what, when and why."""

    verb: Verb
    who: str
    at_s: float  # seconds since 1970
    why: str = ""
    number: int = 0  # in the store
