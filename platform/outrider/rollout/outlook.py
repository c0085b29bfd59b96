"""A rollout as it is shown to people and to Prometheus: where it stands, why, and what it knows."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.rollout.command import Verb
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move
from outrider.rollout.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """All times are seconds since 1970, all durations seconds."""

    rollout_id: str
    candidate: str  # release
    candidate_fingerprint: str
    stable: str
    stable_fingerprint: str
    phase: Phase
    sentence: str  # what the phase means
    is_over: bool
    began_s: float
    elapsed_s: float  # in this phase or step
    step: int = 0  # of the canary, from 0
    weights: tuple[float, ...] = ()  # of the plan's steps
    weight: float = 0.0  # the candidate's share now
    achieved_ratio: float | None = None  # of this step's requests that the candidate answered
    is_paused: bool = False
    waits: str = ""  # for an operator's approval, and why
    has_stalled: bool = False
    reason: str = ""  # of the last move
    next: tuple[str, ...] = ()  # what would make it move, in words
    verdict: Verdict = Verdict.INCONCLUSIVE
    verdict_reason: str = ""
    findings: tuple[Finding, ...] = ()  # of this step; of what is over, those that ended it
    moves: tuple[Move, ...] = ()  # oldest first
    verbs: tuple[Verb, ...] = ()  # what an operator can ask now
    is_controlled: bool = False  # a process ticks; else commands wait for one
    criteria: str = ""  # digest of plan and gates
    run_id: str = ""  # MLflow's


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One that is over."""

    rollout_id: str
    candidate: str
    candidate_fingerprint: str
    phase: Phase
    reason: str
    began_s: float
    run_id: str = ""
