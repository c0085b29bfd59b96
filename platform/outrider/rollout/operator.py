"""What a person asks of the rollout that is active: written down, taken by whoever controls it."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable

from outrider.core import Fault, UserError
from outrider.rollout.command import Command, Verb
from outrider.rollout.controller import Controller
from outrider.rollout.store import Rollout, Store
from outrider.tracking.tracker import RunStatus

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
    """Wait until the command is taken, by the process that controls the rollout or, where there is
    none, by this one. Returns the rollout as it is then. Fault where nobody took it in `wait_s`.
    """
    store, rollout_id = controller.store, controller.rollout_id
    waited_s = 0.0
    while command.number in {
        waiting.number for waiting in store.commands(rollout_id, waiting=True)
    }:
        if waited_s > wait_s:
            raise Fault(f"action={command.verb} is written down, but nobody took it yet")
        if not controller.lease.is_anothers():
            _step_in(controller)
        else:
            pause(tick_s)
            waited_s += tick_s
    return store.get(rollout_id)


def _step_in(controller: Controller) -> None:
    """One look of this process, in place of a controller that is gone."""
    controller.lease.take()
    try:
        controller.tick()
    finally:
        controller.leave(RunStatus.KILLED)
