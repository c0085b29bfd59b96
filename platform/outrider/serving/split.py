"""Which release answers a request. Pure: the plan and the request's key decide, nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Arm(StrEnum):
    """The side of a rollout that answered."""

    STABLE = "stable"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How requests are divided. `weight` (0 to 1) is the candidate's share of the keys."""

    stable: str
    candidate: str | None = None
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The release that answers, and in which arm."""

    release: str
    arm: Arm


def choose(plan: Plan, key: str) -> Choice:
    """Sticky and monotone: a key in the candidate stays there while the weight grows."""
    if plan.candidate is not None and place(key) < plan.weight:
        return Choice(plan.candidate, Arm.CANDIDATE)
    return Choice(plan.stable, Arm.STABLE)


def place(key: str) -> float:
    """A key's fixed place in [0, 1)."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
