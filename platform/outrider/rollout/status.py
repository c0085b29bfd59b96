"""All that is remembered of a rollout but its evidence. It is stored as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outrider.rollout.phase import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The release that is tried: what `Service.deploy` needs."""

    name: str  # as clients and headers see it; never stable's
    fingerprint: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # of ServeJob, plain
    cpus: int = 1  # of one replica
    version: int = 0  # of the registered release; 0: not registered
    uri: str = ""  # what the operator named


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One rollout. `revision` grows with every change: it is the plan's, and the store's guard."""

    rollout_id: str
    service: str  # URL of the gateway
    candidate: Candidate
    stable: str  # name of the release that serves until promotion
    stable_fingerprint: str
    began_s: float  # seconds since 1970
    since_s: float  # when this phase, or this step, began; later by what it was paused
    phase: Phase = Phase.PENDING
    step: int = 0  # of the canary, from 0
    is_paused: bool = False
    paused_s: float = 0.0  # when it was paused
    waits: str = ""  # for an operator's approval, and why; empty: it does not
    approved: bool = False  # of this step
    has_stalled: bool = False  # its time ran out and nothing was decided; told once
    reason: str = ""  # of the last move
    criteria: str = ""  # digest of plan and gates, recorded before the first request
    run_id: str = ""  # MLflow's, of the whole rollout
    revision: int = 1

    def elapsed_s(self, now_s: float) -> float:
        """Of this phase or step; what was paused does not count."""
        until = self.paused_s if self.is_paused else now_s
        return max(0.0, until - self.since_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One transition, as it is shown, stored and posted."""

    phase: Phase
    step: int
    weight: float  # the candidate's share from now on
    reason: str
    at_s: float  # seconds since 1970
    who: str = ""  # operator; empty: the rollout itself
    evidence: tuple[Mapping[str, Any], ...] = ()  # findings, as dicts
    achieved_ratio: float | None = None  # of the step's requests that the candidate answered
    differing: tuple[Mapping[str, Any], ...] = ()  # a sample of mirrored answers that differ
