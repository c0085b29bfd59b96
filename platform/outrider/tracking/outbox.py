"""Entries leave through one thread, so that the job never waits for its store.

While the store is away, entries go to the spool; they are sent, oldest first, when it is back,
or by the next process that starts.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from filelock import Timeout

from outrider.core import Clock, SystemClock
from outrider.tracking.entry import Entry, Figures, Opened, grouped, with_run_id
from outrider.tracking.spool import Spool

log = logging.getLogger(__name__)

MAX_WAITING = 1000  # figures in the queue; at one window in five seconds, more than an hour
GROUP = 100  # windows that are sent at once, out of the spool
FIRST_WAIT_S = 1.0  # before the store is tried again; doubles
LAST_WAIT_S = 60.0
AGAIN_WAIT_S = 1.0  # for a store that did not answer before
DISK_ERRORS = (OSError, Timeout)


class OutageError(Exception):
    """The store is away; the same entry may do later."""


class RejectedError(Exception):
    """The store will never take this entry."""


class Store(Protocol):
    """Where entries go. All raise OutageError, `write` also RejectedError; all may be repeated."""

    def connect(self) -> None: ...
    def open(self, opened: Opened) -> str:
        """The id of the run, made on the first call for `opened.key`."""

    def write(self, run_id: str, entries: Sequence[Entry]) -> None:
        """One entry, or several Figures, oldest first: all of them or none."""

    def sweep(self) -> None:
        """Close the runs whose process is gone."""


@dataclass(slots=True, eq=False)
class Mail:
    """One run's post. `opened.run_id` is empty until the store gave one."""

    opened: Opened
    is_spooled: bool = False  # then all that comes later is spooled too: order is kept
    answered: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Flush:
    done: threading.Event
    is_last_try: bool  # the store is asked again, whenever it was asked before


class Outbox:
    """A bounded queue, the thread that empties it, and the spool behind them."""

    def __init__(self, store: Store, spool: Spool, clock: Clock | None = None) -> None:
        self._store = store
        self._spool = spool
        self._clock = clock or SystemClock()
        self._queue: queue.Queue[tuple[Mail, Entry] | Flush] = queue.Queue()
        self._in_hand: tuple[Mail, Entry] | None = None
        self._spooled: list[Mail] = []
        self._wait_s = 0.0  # 0: the store was there the last time
        self._retry_at = 0.0
        self._is_settled = False
        self._hangs = False  # the thread did not come back from the store in time
        self.num_dropped = 0  # entries lost: windows with the queue full, anything with the disk
        self.num_rejected = 0
        threading.Thread(target=self._run, name="outrider-tracking", daemon=True).start()

    def open(self, opened: Opened) -> Mail:
        """Begin a run. `mail.answered` is set when its id is known, or won't be for now."""
        mail = Mail(opened)
        self._queue.put((mail, opened))
        return mail

    def put(self, mail: Mail, entry: Entry) -> None:
        """Send later. Never blocks and never raises; windows are dropped when too many wait."""
        if isinstance(entry, Figures) and self._queue.qsize() >= MAX_WAITING:
            self.num_dropped += 1
            return
        self._queue.put((mail, entry))

    def flush(self, timeout_s: float, *, is_last_try: bool = True) -> bool:
        """Wait until all is written or spooled. False: the store hangs and the rest was spooled.

        While it hangs, only the first call waits for long.
        """
        done = threading.Event()
        self._queue.put(Flush(done, is_last_try))
        if done.wait(min(timeout_s, AGAIN_WAIT_S) if self._hangs else timeout_s):
            return True
        if not self._hangs:
            log.warning("the tracking store did not answer for %.0f s", timeout_s)
        self._hangs = True
        self._spool_waiting()
        return False

    def _run(self) -> None:
        self._attempt(self._store.connect)
        while True:
            item = self._next()
            if (isinstance(item, Flush) and item.is_last_try) or self._is_due():
                self._replay_own()
            if isinstance(item, Flush):
                item.done.set()
            elif item is not None:
                self._in_hand = item
                self._deliver(*item)
                self._in_hand = None
            self._hangs = False

    def _next(self) -> tuple[Mail, Entry] | Flush | None:
        """The next item; None when it is time to try the store again."""
        patience_s = max(0.0, self._retry_at - self._clock.monotonic()) if self._spooled else None
        try:
            return self._queue.get(timeout=patience_s)
        except queue.Empty:
            return None

    def _is_due(self) -> bool:
        return bool(self._spooled) and self._clock.monotonic() >= self._retry_at

    def _deliver(self, mail: Mail, entry: Entry) -> None:
        is_away = self._wait_s > 0.0 and self._clock.monotonic() < self._retry_at
        if mail.is_spooled or is_away or not self._attempt(partial(self._send, mail, entry)):
            self._keep(mail, entry)
        else:
            self._settle()

    def _send(self, mail: Mail, entry: Entry) -> None:
        if not mail.opened.run_id:
            if mail.opened.resumes:  # what its process left comes before what goes on
                self._take_up(mail.opened.resumes)
            mail.opened = with_run_id(mail.opened, self._store.open(mail.opened))
            mail.answered.set()
        if not isinstance(entry, Opened):
            self._write(mail.opened.run_id, [entry])

    def _write(self, run_id: str, entries: Sequence[Entry]) -> None:
        try:
            self._store.write(run_id, entries)
        except RejectedError as error:
            if len(entries) > 1:  # one of them
                for entry in entries:
                    self._write(run_id, [entry])
                return
            self.num_rejected += 1
            log.warning("run %s: the tracking store refused an entry: %s", run_id, error)

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Whether `action` reached the store; if not, it is left alone for a while.

        A disk that fails under the spool is no other case: what could not be forgotten is sent
        again, which the store takes.
        """
        try:
            action()
        except (OutageError, *DISK_ERRORS) as error:
            if not self._wait_s:
                log.warning(
                    "the tracking store is away (%s); runs are kept in %s until it is back",
                    error,
                    self._spool.folder,
                )
            self._wait_s = min(LAST_WAIT_S, 2.0 * self._wait_s) or FIRST_WAIT_S
            self._retry_at = self._clock.monotonic() + self._wait_s
            return False
        self._wait_s = 0.0
        return True

    def _keep(self, mail: Mail, entry: Entry) -> None:
        entries = () if isinstance(entry, Opened) else (entry,)
        try:
            self._spool.append(mail.opened, entries)
        except DISK_ERRORS as error:
            self.num_dropped += 1
            log.warning("an entry of a run is lost: no store, and no spool: %s", error)
        else:
            if not mail.is_spooled:
                mail.is_spooled = True
                self._spooled.append(mail)
        mail.answered.set()

    def _replay_own(self) -> None:
        for mail in list(self._spooled):
            if not self._attempt(partial(self._replay, mail)):
                return
            mail.is_spooled = False
            self._spooled.remove(mail)
            self._settle()

    def _replay(self, mail: Mail) -> None:
        """Send what the spool holds of a run, and forget what was sent."""
        found = self._spool.read(mail.opened.key)
        entries = found[1] if found else []
        num_sent = 0
        try:
            self._send(mail, mail.opened)
            for group in grouped(entries, GROUP):
                self._write(mail.opened.run_id, group)
                num_sent += len(group)
        finally:
            self._spool.remove(mail.opened, num_sent)

    def _settle(self) -> None:
        """Once, when the store is first reached: finish what earlier processes left."""
        if self._is_settled:
            return
        self._is_settled = True
        if self._attempt(self._take_up):
            self._attempt(self._store.sweep)

    def _take_up(self, run_id: str = "") -> None:
        """Send what dead processes left: of one run, or of all."""
        for key in self._spool.abandoned():
            found = self._spool.read(key)
            if found and (not run_id or run_id in found[0].ids):
                self._replay(Mail(found[0]))

    def _spool_waiting(self) -> None:
        """Put on disk what the thread, which hangs, won't send before the process ends."""
        if self._in_hand is not None:
            self._keep(*self._in_hand)
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, Flush):
                item.done.set()
            else:
                self._keep(*item)
