"""What workers tell while they work: a small file each, read by the driver about once a second.

Counts are cumulative since the worker began, so that a lost beat loses nothing. Rows decoded again
after a worker's death count again: this is work done, not rows done.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from outrider.bulk.figures import Arm
from outrider.core import Completion, Update

BEAT_S = 1.0


@dataclass(slots=True)
class Tally:
    """Work done so far."""

    num_rows: int = 0  # ended, in the speculative arm, whose output is kept
    emitted: int = 0  # tokens, both arms
    speculative: int = 0  # tokens, speculative arm
    drafted: int = 0  # of rows that have ended
    evaluated: int = 0
    accepted: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def since(self, before: Tally) -> Tally:
        return Tally(*(getattr(self, name) - getattr(before, name) for name in self.__slots__))


class Heart:
    """A worker's tally and the thread that writes it down."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"worker-{uuid.uuid4().hex}.json"
        self._tally = Tally()
        self._lock = threading.Lock()
        self._written = Tally()
        threading.Thread(target=self._beat, name="heart", daemon=True).start()

    def listener(self, arm: Arm) -> Callable[[Update], None]:
        """A quick callback for `Decoder.submit`."""

        def hear(update: Update) -> None:
            with self._lock:
                self._tally.emitted += len(update.token_ids)
                if arm is Arm.SPECULATIVE:
                    self._tally.speculative += len(update.token_ids)
                    self._end(update.completion)

        return hear

    def _end(self, completion: Completion | None) -> None:
        if completion is not None:
            self._tally.num_rows += 1
            self._tally.drafted += completion.counters.drafted
            self._tally.evaluated += completion.counters.evaluated
            self._tally.accepted += completion.counters.accepted

    def _beat(self) -> None:
        pause = threading.Event()
        while not pause.wait(BEAT_S):
            with self._lock:
                now = Tally(*asdict(self._tally).values())
            if now != self._written:
                with suppress(OSError):  # a lost beat costs a line of progress, never the work
                    unfinished = self._path.with_suffix(".tmp")
                    unfinished.write_text(json.dumps(asdict(now)))
                    unfinished.replace(self._path)
                self._written = now


def read_tally(folder: Path) -> Tally:
    """Sum over all workers, dead ones too."""
    total = Tally()
    for path in folder.glob("worker-*.json"):
        with suppress(OSError, ValueError, TypeError):  # being replaced just now
            total.add(Tally(**json.loads(path.read_text())))
    return total
