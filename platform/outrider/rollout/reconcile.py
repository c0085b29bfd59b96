"""Makes the service what a status says. Doing it again changes nothing, so it is done at each look:
whatever a crash left undone is mended by the next one.
"""

from __future__ import annotations

from outrider.config.schema import GateSettings, PlanSettings
from outrider.core import Fault
from outrider.rollout.layout import Goal, goal
from outrider.rollout.ports import Health, Service, ServiceState
from outrider.rollout.status import Candidate, Status
from outrider.serving.split import Plan


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

    Raises as `Service`.
    """
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
    return state.releases.keys() == aim.releases


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
