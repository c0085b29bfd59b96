"""How a rollout begins: criteria first, then the database, then the service."""

from __future__ import annotations

import uuid
from dataclasses import replace

from outrider.config.schema import GateSettings, PlanSettings
from outrider.core import Fault, UserError
from outrider.rollout.ports import Service
from outrider.rollout.record import Record, criteria_of, open_run
from outrider.rollout.start import begin, may_start, supersede
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Rollout, Store
from outrider.tracking.tracker import Run, RunStatus, Tracker


def open_rollout(
    candidate: Candidate,
    plan: PlanSettings,
    gates: GateSettings,
    *,
    url: str,
    store: Store,
    service: Service,
    tracker: Tracker,
    now_s: float,
    who: str,
    reason: str = "",
    force: bool = False,
) -> tuple[Rollout, Run]:
    """Write a new rollout of the service at `url` down, with its run. Nothing is deployed yet.

    UserError where it may not start (`start.may_start`), Fault where the service is away.
    """
    status, active = proposed(
        candidate, plan, gates, url=url, store=store, service=service, now_s=now_s, force=force
    )
    run = open_run(tracker, status, plan, gates)
    status = replace(status, run_id=run.run_id, reason=reason)
    superseded = None
    if active is not None:
        ended, move = supersede(active.status, candidate, now_s, who)
        superseded = (active, ended, (move,))
    try:
        begun = store.begin(status, plan, gates, superseded=superseded)
    except BaseException:
        run.close(RunStatus.KILLED)
        raise
    if active is not None:
        _close(tracker, store, active.status.rollout_id)
    return begun, run


def _close(tracker: Tracker, store: Store, rollout_id: str) -> None:
    """End the runs of a rollout that nobody controls any more."""
    over = store.get(rollout_id)
    run = open_run(tracker, over.status, over.plan, over.gates)
    Record(tracker, store, run).follow(over, store.moves(rollout_id))


def proposed(
    candidate: Candidate,
    plan: PlanSettings,
    gates: GateSettings,
    *,
    url: str,
    store: Store,
    service: Service,
    now_s: float,
    force: bool = False,
) -> tuple[Status, Rollout | None]:
    """The status that a rollout would begin with, and the active one whose place it would take."""
    unfinished = store.unfinished(url)
    if unfinished is not None:
        raise UserError(
            f"release: the end of rollout {unfinished.status.rollout_id}"
            f" ({unfinished.status.phase}) has not reached the service: action=start without"
            " release finishes it"
        )
    state = service.state()
    stable = state.releases.get(state.plan.stable)
    if stable is None:
        raise Fault(f"{url}: its stable release {state.plan.stable!r} is not there")
    active, history = store.active(url), [each.status for each in store.history(url)]
    may_start(
        candidate,
        stable.fingerprint,
        active.status if active else None,
        [status for status in history if status.phase.is_over],
        force=force,
    )
    status = begin(
        candidate,
        state.plan,
        history,
        rollout_id=uuid.uuid4().hex[:12],
        service=url,
        stable_fingerprint=stable.fingerprint,
        now_s=now_s,
        criteria=criteria_of(plan, gates),
    )
    return status, active
