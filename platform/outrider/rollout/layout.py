"""What the service must look like for a status: who is stable, how requests are divided, and
which releases there are. Pure, so that it can be put in force again at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.serving.split import Plan

UNSEEN = frozenset({Phase.PENDING, Phase.DEPLOYING, Phase.WARMING})  # before it meets traffic
TRIED = frozenset({Phase.SHADOW, Phase.CANARY, Phase.CONFIRMING})  # beside stable
IN_CHARGE = frozenset({Phase.PROMOTING, Phase.KEEPING, Phase.PROMOTED})  # in its place


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """All that the service must be."""

    plan: Plan
    releases: frozenset[str]  # that must be there; any other one goes, once the plan is in force


def goal(status: Status, plan: PlanSettings, gates: GateSettings) -> Goal:
    return Goal(plan=plan_of(status, plan, gates), releases=wanted(status))


def serving_release(status: Status) -> str:
    """The release that is stable from this status on: champion, too."""
    return status.candidate.name if status.phase in IN_CHARGE else status.stable


def weight_of(status: Status, plan: PlanSettings) -> float:
    """The candidate's share of the keys. It grows from step to step, or is 0 again for good."""
    if status.phase is Phase.CANARY:
        return plan.weights[status.step]
    if status.phase is Phase.CONFIRMING:
        return plan.weights[-1]
    return 1.0 if status.phase in IN_CHARGE else 0.0


def plan_of(status: Status, plan: PlanSettings, gates: GateSettings) -> Plan:
    """How requests are divided; the salt is the rollout's, so a key keeps its place all along.

    The candidate is named only while it is tried: not before it is ready, and not once it is
    stable. It decodes shadows in the shadow phase alone: beside a canary's own requests they would
    slow one arm only, and the arms would no longer be alike.
    """
    if status.phase not in TRIED:
        return Plan(
            stable=serving_release(status), salt=status.rollout_id, revision=status.revision
        )
    return Plan(
        stable=status.stable,
        candidate=status.candidate.name,
        weight=weight_of(status, plan),
        shadow_share=plan.shadow_share if status.phase is Phase.SHADOW else 0.0,
        shadow_in_flight=plan.shadow_in_flight,
        shadow_deadline_s=plan.shadow_deadline_s,
        most_per_minute=plan.most_per_minute,
        near_tie=gates.near_tie,
        salt=status.rollout_id,
        revision=status.revision,
    )


def wanted(status: Status) -> frozenset[str]:
    """Names of the releases that must be there: stable until its time after a promotion is over."""
    if status.phase is Phase.PROMOTED:
        return frozenset({status.candidate.name})
    if status.phase is Phase.PENDING or status.phase.is_bad_end:
        return frozenset({status.stable})
    return frozenset({status.stable, status.candidate.name})
