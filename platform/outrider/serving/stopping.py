"""Signals of a server: the first asks it to stop, the second stops it at once."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType

from outrider.config.interruption import Terminated
from outrider.tracking.lifecycle import SIGNALS


class Stop:
    """Entered in the main thread. Until `be_patient` the first signal already raises.

    What is raised is KeyboardInterrupt for SIGINT and `Terminated` for SIGTERM, once; signals
    after that are left unheard, so that nothing breaks the closing. The handlers from before
    come back at the end.
    """

    def __init__(self) -> None:
        self._num_heard = 0
        self._most = 1  # signals, the last of which raises
        # A handler may interrupt any line of ours: it takes no lock, it writes to a pipe.
        self._told, self._tell = os.pipe()

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        os.close(self._told)
        os.close(self._tell)

    def be_patient(self) -> None:
        """From now on the first signal is an answer of `wait`."""
        self._most = 2

    def wait(self, timeout_s: float) -> bool:
        """Whether a signal came, at once or within `timeout_s`."""
        return bool(select.select([self._told], [], [], timeout_s)[0])

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._num_heard += 1
        if self._num_heard < self._most:
            os.write(self._tell, b"!")
        elif self._num_heard == self._most:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
