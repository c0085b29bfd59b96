"""Who ticks: one process for each service, until it ends or is not heard of for a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from outrider.core import Clock, UserError
from outrider.rollout.database import Database
from outrider.rollout.store import LostError
from outrider.rollout.tables import LEASES
from outrider.tracking.process import Process

LEASE_S = 60.0  # longer than the longest tick


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to tick of one process. It is renewed at each tick.

    Another process takes it over when it has expired, or at once where its owner is surely gone:
    a process of this machine that has ended.
    """

    database: Database
    service: str
    process: Process
    clock: Clock

    def take(self) -> None:
        """UserError while another process has it."""
        if not self._is_taken():
            raise UserError(f"{self.service}: {self.holder()} controls its rollout already")

    def renew(self) -> None:
        """LostError where another process took it over."""
        if not self._is_taken():
            raise LostError(f"{self.service}: {self.holder()} controls its rollout now")

    def is_anothers(self) -> bool:
        """Whether another process holds it, which may be alive."""
        found = self._read()
        return found is not None and found[0] != self._own and not self._is_free(*found)

    def is_held(self) -> bool:
        """Whether any process holds it, which may be alive."""
        found = self._read()
        return found is not None and not self._is_free(*found)

    def give_back(self) -> None:
        """Only where it is ours."""
        is_ours = (LEASES.c.service == self.service) & (LEASES.c.owner == self._own)
        with self.database.transaction() as connection:
            connection.execute(update(LEASES).where(is_ours).values(expires_s=0.0))

    def holder(self) -> str:
        """In words."""
        owner = _process(found[0]) if (found := self._read()) else None
        return f"process {owner.pid} on {owner.host}" if owner else "another process"

    def _is_taken(self) -> bool:
        expires_s = self.clock.time() + LEASE_S
        found = self._read()
        try:
            with self.database.transaction() as connection:
                if found is None:
                    row = {"service": self.service, "owner": self._own, "expires_s": expires_s}
                    connection.execute(insert(LEASES).values(**row))
                    return True
                if found[0] != self._own and not self._is_free(*found):
                    return False
                is_as_read = (
                    (LEASES.c.service == self.service)
                    & (LEASES.c.owner == found[0])
                    & (LEASES.c.expires_s == found[1])
                )
                values = {"owner": self._own, "expires_s": expires_s}
                changed = connection.execute(update(LEASES).where(is_as_read).values(**values))
                return changed.rowcount == 1
        except IntegrityError:  # another process was quicker
            return False

    def _is_free(self, owner: str, expires_s: float) -> bool:
        if expires_s <= self.clock.time():
            return True
        process = _process(owner)
        return process is not None and process.is_gone(self.process)

    def _read(self) -> tuple[str, float] | None:
        wanted = select(LEASES.c.owner, LEASES.c.expires_s).where(LEASES.c.service == self.service)
        with self.database.transaction() as connection:
            row = connection.execute(wanted).one_or_none()
        return (str(row.owner), float(row.expires_s)) if row else None

    @property
    def _own(self) -> str:
        return json.dumps(self.process.to_tags(), sort_keys=True)


def _process(owner: str) -> Process | None:
    tags = json.loads(owner)
    return Process.from_tags(tags) if isinstance(tags, Mapping) else None
