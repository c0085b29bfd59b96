"""The rollouts of one gateway, out of the database in which whoever controls them writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from outrider.console.order import LONGEST_NAME, LONGEST_REASON, Order
from outrider.console.ports import RolloutsSeen
from outrider.core import Clock, SystemClock, UserError
from outrider.rollout import annals
from outrider.rollout.command import Command, Verb
from outrider.rollout.database import Database
from outrider.rollout.lease import Lease
from outrider.rollout.outlook import outlook, past
from outrider.rollout.status import Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.words import verbs
from outrider.tracking.process import Process

MOST_PAST = 10
WAIT_S = 2.0  # for a database; `source.WAIT_S` waits a little longer
NOBODY = "console"
KEY = "console.database"


class StoredRollouts:
    """`ports.Rollouts`. Its connection ends with each look: a database that is taken away, or
    brought back, meets nobody who holds it.
    """

    def __init__(self, database: str, url: str, clock: Clock | None = None) -> None:
        """`database`: a SQLAlchemy URL. `url`: of the gateway, as jobs/rollout.py names it."""
        self._address = database
        self._database: Database | None = None
        self._lock = threading.Lock()  # a look and an order
        self._url = url.rstrip("/")
        self._clock = clock or SystemClock()
        self._process = Process.current()

    def look(self) -> RolloutsSeen:
        with self._visit() as store:
            found = store and (store.active(self._url) or store.newest(self._url))
            return self._seen(store, found) if store and found else RolloutsSeen()

    def order(self, order: Order) -> str:
        verb = order.verb
        with self._visit() as store:
            active = store and store.active(self._url)
            if not store or not active:
                raise UserError(f"{verb}: this service has no active rollout")
            _check_same(verb, order.rollout_id, active.status)
            _check(verb, active.status)
            command = Command(
                verb=verb,
                who=_plain(order.who, LONGEST_NAME) or NOBODY,
                why=_plain(order.why, LONGEST_REASON),
                at_s=self._clock.time(),
            )
            store.order(order.rollout_id, command)  # one that begins just now gets none of it
            is_controlled = self._is_controlled(store)
            return _told(verb, active.status, self._url, is_controlled=is_controlled)

    @contextmanager
    def _visit(self) -> Iterator[Store | None]:
        """None where nobody made the database so far."""
        with self._lock:
            database = self._database or Database(self._address, visit_s=WAIT_S, key=KEY)
            self._database = database
            try:
                yield Store(database) if database.is_there else None
            finally:
                database.close()

    def _seen(self, store: Store, found: Rollout) -> RolloutsSeen:
        shown = found.status.rollout_id
        held, moves = self._is_controlled(store), store.moves(shown)
        over = annals.ended(store.database, self._url, MOST_PAST + 1)
        return RolloutsSeen(
            newest=outlook(found, moves, self._clock.time(), is_controlled=held),
            past=tuple(past(each) for each in over if each.rollout_id != shown)[:MOST_PAST],
            num_by_phase=annals.num_by_phase(store.database, self._url),
        )

    def _is_controlled(self, store: Store) -> bool:
        return Lease(store.database, self._url, self._process, self._clock).is_held()


def _check_same(verb: Verb, rollout_id: str, status: Status) -> None:
    if status.rollout_id != rollout_id:
        raise UserError(
            f"{verb}: rollout {_plain(rollout_id, LONGEST_NAME)} is over; the rollout of "
            f"{status.candidate.name}, {status.rollout_id}, is active now and was asked nothing"
        )


def _check(verb: Verb, status: Status) -> None:
    can = list(verbs(status))
    if verb not in can:
        held = "paused in " if status.is_paused else ""
        raise UserError(
            f"{verb}: not now, the rollout of {status.candidate.name} is {held}{status.phase}; "
            f"it takes {', '.join(can)}"
        )


def _told(verb: Verb, status: Status, url: str, *, is_controlled: bool) -> str:
    written = f"{verb} is written down for the rollout of {status.candidate.name}"
    if is_controlled:
        return f"{written}: it is taken at the next look"
    return f"{written}: nobody controls it now; python jobs/rollout.py url={url} goes on with it"


def _plain(text: str, most: int) -> str:
    """One line of what can be shown."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(shown.split())[:most]
