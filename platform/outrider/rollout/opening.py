"""How a rollout begins: criteria first, then the database, then the service."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from outrider.config.schema import GateSettings, PlanSettings
from outrider.core import Fault, UserError
from outrider.rollout.ports import Service
from outrider.rollout.record import Record, criteria_of, open_run
from outrider.rollout.start import begin, may_start, supersede
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Rollout, Store
from outrider.tracking.tracker import Run, RunStatus, Tracker


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A rollout of the service at `url` that is about to begin.

    UserError where it may not (`start.may_start`), Fault where the service is away.
    """

    candidate: Candidate
    plan: PlanSettings
    gates: GateSettings
    url: str
    store: Store
    service: Service
    now_s: float  # seconds since 1970
    force: bool = False

    def open(self, tracker: Tracker, *, who: str, reason: str = "") -> tuple[Rollout, Run]:
        """Write it down, with its run. Nothing is deployed yet."""
        status, active = self.proposed()
        run = open_run(tracker, status, self.plan, self.gates)
        status = replace(status, run_id=run.run_id, reason=reason)
        superseded = None
        if active is not None:
            ended, move = supersede(active.status, self.candidate, self.now_s, who)
            superseded = (active, ended, (move,))
        try:
            begun = self.store.begin(status, self.plan, self.gates, superseded=superseded)
        except BaseException:
            run.close(RunStatus.KILLED)
            raise
        if active is not None:
            _close(tracker, self.store, active.status.rollout_id)
        return begun, run

    def proposed(self) -> tuple[Status, Rollout | None]:
        """The status that it would begin with, and the active one whose place it would take."""
        self._check_finished()
        state = self.service.state()
        stable = state.releases.get(state.plan.stable)
        if stable is None:
            raise Fault(f"{self.url}: its stable release {state.plan.stable!r} is not there")
        active = self.store.active(self.url)
        history = [each.status for each in self.store.history(self.url)]
        may_start(
            self.candidate,
            stable.fingerprint,
            active.status if active else None,
            [status for status in history if status.phase.is_over],
            force=self.force,
        )
        status = begin(
            self.candidate,
            state.plan,
            history,
            rollout_id=uuid.uuid4().hex[:12],
            service=self.url,
            stable_fingerprint=stable.fingerprint,
            now_s=self.now_s,
            criteria=criteria_of(self.plan, self.gates),
        )
        return status, active

    def _check_finished(self) -> None:
        unfinished = self.store.unfinished(self.url)
        if unfinished is not None:
            raise UserError(
                f"release: the end of rollout {unfinished.status.rollout_id}"
                f" ({unfinished.status.phase}) has not reached the service: action=start without"
                " release finishes it"
            )


def _close(tracker: Tracker, store: Store, rollout_id: str) -> None:
    """End the runs of a rollout that nobody controls any more."""
    over = store.get(rollout_id)
    run = open_run(tracker, over.status, over.plan, over.gates)
    Record(tracker, store, run).follow(over, store.moves(rollout_id))
