"""A rollout as it is shown to people and to Prometheus: where it stands, why, and what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outrider.rollout.command import Verb
from outrider.rollout.layout import weight_of
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move, Status
from outrider.rollout.stored import judgement_of
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.rollout.words import ahead, ending, verbs

if TYPE_CHECKING:
    from outrider.rollout.store import Rollout


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


def outlook(
    rollout: Rollout, moves: Sequence[Move], now_s: float, *, is_controlled: bool
) -> Outlook:
    """As `words.explain` tells it, for whoever lays it out. `moves` oldest first."""
    status, plan = rollout.status, rollout.plan
    judgement, achieved_ratio = _evidence(rollout, moves)
    return Outlook(
        rollout_id=status.rollout_id,
        candidate=status.candidate.name,
        candidate_fingerprint=status.candidate.fingerprint,
        stable=status.stable,
        stable_fingerprint=status.stable_fingerprint,
        phase=status.phase,
        sentence=status.phase.sentence,
        is_over=status.phase.is_over,
        began_s=status.began_s,
        elapsed_s=status.elapsed_s(now_s),
        step=status.step,
        weights=plan.weights,
        weight=weight_of(status, plan),
        achieved_ratio=achieved_ratio,
        is_paused=status.is_paused,
        waits=status.waits,
        has_stalled=status.has_stalled,
        reason=status.reason,
        next=tuple(ahead(status, plan, now_s)),
        verdict=judgement.verdict,
        verdict_reason=judgement.reason,
        findings=judgement.findings,
        moves=tuple(moves),
        verbs=tuple(verbs(status)),
        is_controlled=is_controlled,
        criteria=status.criteria,
        run_id=status.run_id,
    )


def past(status: Status) -> Past:
    return Past(
        rollout_id=status.rollout_id,
        candidate=status.candidate.name,
        candidate_fingerprint=status.candidate.fingerprint,
        phase=status.phase,
        reason=status.reason,
        began_s=status.began_s,
        run_id=status.run_id,
    )


def _evidence(rollout: Rollout, moves: Sequence[Move]) -> tuple[Judgement, float | None]:
    """What is known, and the achieved share of the step that it is known of."""
    if not rollout.status.phase.is_over:
        return rollout.judgement, rollout.sums.achieved_ratio
    end = ending(moves)
    if end is None:
        return Judgement(), None
    return judgement_of({"findings": end.evidence}), end.achieved_ratio
