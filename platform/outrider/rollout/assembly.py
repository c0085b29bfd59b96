"""Puts a controller of one rollout together."""

from __future__ import annotations

from collections.abc import Callable

from outrider.core import Clock
from outrider.rollout.aliases import Aliases
from outrider.rollout.complaints import Complaints
from outrider.rollout.confirm import Confirming
from outrider.rollout.controller import Controller
from outrider.rollout.lease import Lease
from outrider.rollout.look import Looking
from outrider.rollout.ports import Service
from outrider.rollout.record import Record
from outrider.rollout.store import Rollout, Store
from outrider.rollout.webhooks import Webhooks
from outrider.tracking.process import Process
from outrider.tracking.registry import Registry
from outrider.tracking.tracker import Run, Tracker
from outrider.trial.evaluation import Evaluation


def controller_of(
    rollout: Rollout,
    *,
    store: Store,
    service: Service,
    registry: Registry,
    tracker: Tracker,
    webhooks: Webhooks,
    prompts: Evaluation,
    clock: Clock,
    tell: Callable[[str], None],
    run: Run | None = None,
    process: Process | None = None,
) -> Controller:
    """`run`: of the rollout, where this process opened it; None goes on in the one that it has.

    `prompts`: those that confirm (`confirm.confirmation_prompts`).
    """
    status, complaints = rollout.status, Complaints(tell)
    return Controller(
        rollout_id=status.rollout_id,
        store=store,
        service=service,
        aliases=Aliases(store, registry),
        looking=Looking(
            store=store,
            service=service,
            confirming=Confirming(prompts, service, store, registry),
            webhooks=webhooks,
            complaints=complaints,
        ),
        record=Record(tracker, store, run),
        webhooks=webhooks,
        lease=Lease(store.database, status.service, process or Process.current(), clock),
        clock=clock,
        tell=tell,
        complaints=complaints,
    )
