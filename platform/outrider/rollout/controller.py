"""Carries a rollout through: looks, asks `advance`, writes down, makes the service so.

Whoever ticks may die anywhere. What is written down is carried out at the next look, by this
process or another one; what is carried out already stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from outrider.core import Clock, Fault, UserError
from outrider.rollout.aliases import Aliases
from outrider.rollout.complaints import Complaints
from outrider.rollout.lease import Lease
from outrider.rollout.look import Looking
from outrider.rollout.notice import notice
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Service, ServiceState
from outrider.rollout.reconcile import reconcile, refuse_foreign
from outrider.rollout.record import Record
from outrider.rollout.state import advance
from outrider.rollout.status import Move, Status
from outrider.rollout.store import SETTLED, LostError, Rollout, Store
from outrider.rollout.sums import Sums
from outrider.rollout.verdict import Judgement
from outrider.rollout.webhooks import Webhooks
from outrider.rollout.words import lines
from outrider.tracking.lifecycle import status_of
from outrider.tracking.tracker import RunStatus

POSTED = "posted"  # note: number of the last move whose notices are out
CLOSE_S = 20.0  # for notices that are under way when a controller ends


@dataclass(kw_only=True)
class Controller:
    """One rollout in the hands of one process. `tick` is one look; `run` looks until it is over."""

    rollout_id: str
    store: Store
    service: Service
    aliases: Aliases
    looking: Looking
    record: Record
    webhooks: Webhooks
    lease: Lease
    clock: Clock
    tell: Callable[[str], None]
    complaints: Complaints
    _rollout: Rollout | None = field(default=None, init=False)  # None: to be read anew
    _num_shown: int | None = field(default=None, init=False)  # moves on the screen
    _num_sent: int = field(default=0, init=False)  # moves given to the webhooks
    _is_told: bool = field(default=False, init=False)  # all moves, to everybody
    _is_settled: bool = field(default=False, init=False)

    def run(
        self,
        *,
        tick_s: float,
        patience_s: float = 0.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> Status:
        """Look every `tick_s` until it is over and the service is as its end says.

        `patience_s`: how long another controller may take to leave, of a rollout whose place this
        one took. Raises UserError where it does not, LostError where somebody took this one over.
        """
        self._take_lease(patience_s, pause)
        try:
            while not self._is_done(self._try()):
                pause(tick_s)
        except LostError:
            self.leave(None)
            raise
        except BaseException as error:
            self.leave(status_of(error))
            raise
        self.leave(RunStatus.FINISHED)
        return self.store.get(self.rollout_id).status

    def tick(self) -> Status:
        """One look. A crash between any two lines is mended by the next one."""
        self.lease.renew()
        before = self._read()
        self._rollout = None  # whatever breaks from here on, it is read anew
        state = self._reconciled(before)
        rollout, seen = self.looking.look(before, state, is_settled=self._is_settled)
        status, moves = advance(rollout.status, seen, rollout.plan, self.clock.time())
        moves = tuple(_with_sample(move, rollout.sums) for move in moves)
        after = _onward(rollout, status)
        if after != before or seen.commands:
            after = self.store.commit(after, moves, seen.commands)
        if status != before.status:
            self._reconciled(after)
        self._is_told = self._is_told and not moves
        self._publish(after)
        self._rollout = after
        return status

    def leave(self, status: RunStatus | None) -> None:
        """Let another process go on: what is under way is ended, within CLOSE_S.

        `status`: of its runs here; None: they are another process's by now.
        """
        self.webhooks.close(CLOSE_S)
        if status is not None:
            self.record.leave(status)
        with suppress(Fault):  # it expires by itself
            self._keep_posted()
            self.lease.give_back()

    @property
    def is_settled(self) -> bool:
        """Whether service and aliases were as the status wants them, at the last look."""
        return self._is_settled

    def _take_lease(self, patience_s: float, pause: Callable[[float], None]) -> None:
        waited_s = 0.0
        while self.lease.is_anothers() and waited_s < patience_s:
            if not waited_s:
                self.tell(f"{self.lease.holder()} controls it: waiting until that leaves")
            pause(1.0)
            waited_s += 1.0
        self.lease.take()

    def _try(self) -> Status | None:
        """A look; None while the database is away."""
        try:
            status = self.tick()
        except LostError:
            raise
        except Fault as fault:
            self.complaints.about("database", str(fault))
            return None
        self.complaints.about("database")
        return status

    def _is_done(self, status: Status | None) -> bool:
        return status is not None and status.phase.is_over and self._is_settled

    def _read(self) -> Rollout:
        rollout = self._rollout or self.store.get(self.rollout_id)
        if self.store.num_writes(self.rollout_id) != rollout.num_writes:
            raise LostError(f"rollout {self.rollout_id}: another process has gone on with it")
        if self._num_shown is None:
            self._num_shown = len(self.store.moves(self.rollout_id))
            self._num_sent = int(self.store.note(self.rollout_id, POSTED) or 0)
        return rollout

    def _reconciled(self, rollout: Rollout) -> ServiceState | None:
        """Make the service and the aliases what the status says. None while it is away."""
        status, self._is_settled = rollout.status, False
        try:
            state = self.service.state()
            refuse_foreign(state, status)
        except (Fault, UserError) as error:
            self.complaints.about("service", str(error))
            return None
        self.complaints.about("service")
        try:
            self._is_settled = reconcile(self.service, state, status, rollout.plan, rollout.gates)
            self.looking.refusal = ""
            self.complaints.about("releases")
        except (Fault, UserError) as error:
            self.complaints.about("releases", str(error))
            if isinstance(error, UserError) and status.candidate.name not in state.releases:
                self.looking.refusal = str(error)
        self._is_settled = self._is_settled and self._are_given(status)
        if self._is_settled and status.phase.is_over:
            self.store.keep(status.rollout_id, SETTLED, SETTLED)
        return state

    def _are_given(self, status: Status) -> bool:
        """Aliases follow a plan that is in force, never the other way round."""
        try:
            self.aliases.settle(status)
        except (Fault, UserError) as error:
            self.complaints.about("registry", str(error))
            return False
        self.complaints.about("registry")
        return True

    def _publish(self, rollout: Rollout) -> None:
        """Tell the screen, the tracker and the webhooks what is written down and not told yet."""
        if not self._is_told:
            moves = self.store.moves(self.rollout_id)
            self._show(rollout.status, moves)
            self.record.follow(rollout, moves)
            self._is_told = True
        self.record.look(rollout, self.clock.time())
        self._keep_posted()

    def _show(self, status: Status, moves: tuple[Move, ...]) -> None:
        for move in moves[self._num_shown or 0 :]:
            for text in lines(move):
                self.tell(text)
        self._num_shown = len(moves)
        for number, move in enumerate(moves, start=1):
            if number > self._num_sent:
                self.webhooks.notify(number, notice(status, move), is_end=move.phase.is_over)
        self._num_sent = len(moves)

    def _keep_posted(self) -> None:
        if self.webhooks.num_done > int(self.store.note(self.rollout_id, POSTED) or 0):
            self.store.keep(self.rollout_id, POSTED, str(self.webhooks.num_done))


def _with_sample(move: Move, sums: Sums) -> Move:
    """What the step had to show, which its successor begins without."""
    return replace(move, achieved_ratio=sums.achieved_ratio, differing=sums.sample)


def _onward(rollout: Rollout, status: Status) -> Rollout:
    """Another phase or step begins with no evidence; what was read belongs to the one before.

    The confirmation is decoded beside the last step of the canary, whose evidence goes on.
    """
    before = rollout.status
    is_beside = (before.phase, status.phase) == (Phase.CANARY, Phase.CONFIRMING)
    if is_beside or (status.phase, status.step) == (before.phase, before.step):
        return replace(rollout, status=status)
    return replace(rollout, status=status, sums=Sums(), judgement=Judgement())
