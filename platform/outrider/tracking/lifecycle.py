"""A run ends as FINISHED, FAILED or KILLED, whatever ends its job."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from outrider.config.interruption import Terminated, interruption_in
from outrider.tracking.tracker import Run, RunStatus

RunT = TypeVar("RunT", bound=Run)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# `ray.init` puts its own SIGTERM handler, which exits with the signal's number.
KILLED_EXITS = frozenset(number for sig in SIGNALS for number in (int(sig), 128 + int(sig)))


@contextmanager
def terminate_as_exception() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM and KeyboardInterrupt at SIGINT, in the main thread, once.

    Later signals are left unheard, so that an impatient second one can't break the closing of
    a run; closing is bounded in time, and SIGKILL and SIGQUIT stay. The handlers from before
    come back at the end. Enter this after `ray.init`, which puts a handler of its own. In
    another thread, where no handler can be put, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    ours = os.getpid()

    def hear(number: int, frame: FrameType | None) -> None:
        if os.getpid() != ours:  # forked by a library, which now ends it
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        heard.append(number)
        if len(heard) == 1:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def closing(run: RunT) -> Iterator[RunT]:
    """Close `run` with the status that the block's end deserves; the exception goes on."""
    try:
        yield run
    except BaseException as error:
        _close(run, status_of(error))
        raise
    _close(run, RunStatus.FINISHED)


def status_of(error: BaseException) -> RunStatus:
    """KILLED for a signal, FINISHED for an exit with status 0, else FAILED."""
    match interruption_in(error):
        case KeyboardInterrupt() | Terminated():
            return RunStatus.KILLED
        case SystemExit(code=None | 0):
            return RunStatus.FINISHED
        case SystemExit(code=int(code)) if code in KILLED_EXITS:
            return RunStatus.KILLED
    return RunStatus.FAILED


def _close(run: Run, status: RunStatus) -> None:
    try:
        run.close(status)
    except (KeyboardInterrupt, Terminated):
        run.close(RunStatus.KILLED)  # the first status stays, if it was taken already
        raise
