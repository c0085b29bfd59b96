"""Which release answers a request, and which one repeats it unseen. Pure: the plan and the
request's key decide, nothing else.
"""

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
    shadow_share: float = 0.0  # of stable's requests that the candidate decodes too
    shadow_in_flight: int = 4  # mirrored requests at a time
    shadow_deadline_s: float = 60.0  # longest that a mirrored request may take
    most_per_minute: int = 0  # requests that the candidate may get; 0: any number
    near_tie: float = 0.5  # logits; a mirrored answer that parts at a smaller margin is near
    salt: str = ""  # of the rollout: each has its own first 5 %
    revision: int = 0  # a plan of a lower one comes too late

    @property
    def arms(self) -> tuple[tuple[Arm, str, float], ...]:
        """Arm, its release and its share of the requests (0 to 1), stable first."""
        if self.candidate is None:
            return ((Arm.STABLE, self.stable, 1.0),)
        return (
            (Arm.STABLE, self.stable, 1.0 - self.weight),
            (Arm.CANDIDATE, self.candidate, self.weight),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The release that answers, and in which arm."""

    release: str
    arm: Arm
    mirror: str | None = None  # release that decodes it too, for nobody
    is_forced: bool = False  # by the request's own header: no fair sample of its arm


def choose(plan: Plan, key: str, forced: Arm | None = None) -> Choice:
    """Sticky and monotone: a key in the candidate stays there while the weight grows.

    `forced`: the arm that the request asks for; where there is no candidate, stable answers.
    """
    if plan.candidate is None:
        return Choice(plan.stable, Arm.STABLE, is_forced=forced is Arm.STABLE)
    is_candidates = place(plan.salt, key) < plan.weight
    if forced is not None:
        is_candidates = forced is Arm.CANDIDATE
    if is_candidates:
        return Choice(plan.candidate, Arm.CANDIDATE, is_forced=forced is not None)
    # Another salt: whether a key is mirrored says nothing about its place in the split.
    is_mirrored = place(f"{plan.salt}/shadow", key) < plan.shadow_share
    mirror = plan.candidate if is_mirrored and forced is None else None
    return Choice(plan.stable, Arm.STABLE, mirror, is_forced=forced is not None)


def place(salt: str, key: str) -> float:
    """A key's fixed place in [0, 1)."""
    text = f"{salt}\0{key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
