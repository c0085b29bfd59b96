"""What a person asks of the rollout that is active: written down, taken by whoever controls it."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outrider.core import Fault, UserError
from outrider.rollout.command import Command, Verb
from outrider.rollout.store import Rollout, Store
from outrider.tracking.tracker import RunStatus

if TYPE_CHECKING:  # whoever only orders needs none of it
    from outrider.rollout.controller import Controller

WAIT_S = 90.0  # longer than a lease: a controller of another machine may have just died


def who() -> str:
    """user@host, as the operator of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def order(
    store: Store, service: str, verb: Verb, *, who: str, why: str, at_s: float
) -> tuple[Rollout, Command]:
    """Write it down for the active rollout. UserError where there is none."""
    active = store.active(service)
    if active is None:
        raise UserError(f"action={verb}: {service} has no active rollout")
    command = Command(verb=verb, who=who, why=why, at_s=at_s)
    return active, store.order(active.status.rollout_id, command)


def see_through(
    command: Command,
    controller: Controller,
    *,
    tick_s: float,
    pause: Callable[[float], None] = time.sleep,
    wait_s: float = WAIT_S,
) -> Rollout:
    """Wait until the command is taken: by the process that controls the rollout or, where there is
    none, by this one, which also sees an end through to the service.

    Returns the rollout as it is then. Fault where that does not come about in `wait_s`.
    """
    store, waits = controller.store, _Waits(pause, tick_s, wait_s)
    while _is_waiting(store, controller.rollout_id, command):
        if not controller.lease.is_anothers():
            _step_in(controller, waits)
        elif not waits.more():
            raise Fault(f"action={command.verb} is written down, but nobody took it yet")
    return store.get(controller.rollout_id)


@dataclass
class _Waits:
    """Patience that is spent."""

    pause: Callable[[float], None]
    tick_s: float
    left_s: float

    def more(self) -> bool:
        """Wait once more; False where it is all spent."""
        self.pause(self.tick_s)
        self.left_s -= self.tick_s
        return self.left_s > 0


def _is_waiting(store: Store, rollout_id: str, command: Command) -> bool:
    waiting = store.commands(rollout_id, waiting=True)
    return command.number in {each.number for each in waiting}


def _step_in(controller: Controller, waits: _Waits) -> None:
    """One look of this process, in place of a controller that is gone; more of them where that
    ended the rollout and the service does not follow yet.
    """
    controller.lease.take()
    try:
        while controller.tick().phase.is_over and not controller.is_settled:
            if not waits.more():
                raise Fault("it is over, but its end has not reached the service: action=start")
    finally:
        controller.leave(RunStatus.KILLED)
