"""Makes the service what a status says. Doing it again changes nothing, so it is done at each look:
whatever a crash left undone is mended by the next one.
"""

from __future__ import annotations

from outrider.config.schema import GateSettings, PlanSettings
from outrider.core import Fault
from outrider.rollout.layout import IN_CHARGE, Goal, goal
from outrider.rollout.ports import Health, Service, ServiceState
from outrider.rollout.status import Candidate, Status
from outrider.serving.split import Plan

SHORT = 12  # digits of a fingerprint that are told


def reconcile(
    service: Service,
    state: ServiceState,
    status: Status,
    plan: PlanSettings,
    gates: GateSettings,
) -> bool:
    """Order what `state` lacks; return whether it lacks nothing, its plan and releases are ours.

    1. The candidate is deployed where it should be and is not.
    2. Readiness before weight: a plan that names the candidate waits until it answers; one that
       gives the old stable everything never waits.
    3. A release goes only once a plan is in force that does not need it.
    4. Behind a promotion the old stable may be lost: nobody could bring it back.

    A service that was begun anew is left as it is, without the candidate. Raises as `Service`.
    """
    if begun_anew(state, status):
        return _is_left(service, state, status)
    aim = goal(status, plan, gates)
    if status.candidate.name in aim.releases - state.releases.keys():
        service.deploy(status.candidate)
        return False
    if state.plan.revision < aim.plan.revision:
        if _is_due(state, status.candidate, aim.plan):
            service.put_plan(aim.plan)
            _remove_rest(service, state, aim)
        return False
    _remove_rest(service, state, aim)
    lost = aim.releases - state.releases.keys()
    return state.releases.keys() <= aim.releases and aim.plan.stable not in lost


def begun_anew(state: ServiceState, status: Status) -> str:
    """What is stable there where it is not what the rollout began beside; empty where it is.

    Behind a promotion the candidate is made stable again, whatever is there.
    """
    name = state.plan.stable
    there = state.releases.get(name)
    if there is None or status.phase in IN_CHARGE or name == status.candidate.name:
        return ""
    if (name, there.fingerprint) == (status.stable, status.stable_fingerprint):
        return ""
    return (
        f"the service was begun anew with {name} ({there.fingerprint[:SHORT]}) in place of"
        f" {status.stable} ({status.stable_fingerprint[:SHORT]})"
    )


def _is_left(service: Service, state: ServiceState, status: Status) -> bool:
    """Nothing is left there of a rollout that is over."""
    is_there = status.candidate.name in state.releases
    if status.phase.is_over and is_there:
        service.remove(status.candidate.name)
    return status.phase.is_over and not is_there


def refuse_foreign(state: ServiceState, status: Status) -> None:
    """Raises Fault where the gateway follows somebody else's plan: a rollout of another database
    is under way there, and the evidence would be of its weights.
    """
    there = state.plan
    is_ours = there.revision == status.revision and there.salt == status.rollout_id
    if there.revision >= status.revision and not is_ours:
        raise Fault(
            f"it follows plan {there.revision} of rollout {there.salt or '(unknown)'}, ours is"
            f" {status.revision} of {status.rollout_id}: is it controlled from another database?"
        )


def _is_due(state: ServiceState, candidate: Candidate, plan: Plan) -> bool:
    needs_candidate = candidate.name in (plan.stable, plan.candidate)
    return not needs_candidate or state.releases[candidate.name].health is Health.READY


def _remove_rest(service: Service, state: ServiceState, aim: Goal) -> None:
    """Nothing while the stable release is missing: then it is not the service we know."""
    if aim.plan.stable in state.releases:
        for name in sorted(state.releases.keys() - aim.releases):
            service.remove(name)
