"""What a service's rollouts came to, for whoever only looks."""

from __future__ import annotations

from sqlalchemy import JSON, ColumnElement, Connection, cast, func, select

from outrider.rollout.database import Database
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.rollout.stored import parsed, status_of
from outrider.rollout.tables import ROLLOUTS


def ended(database: Database, service: str, most: int) -> tuple[Status, ...]:
    """Those that are over, newest first."""
    wanted = (
        select(ROLLOUTS.c.status)
        .where(ROLLOUTS.c.service == service, ROLLOUTS.c.active.is_(None))
        .order_by(ROLLOUTS.c.began_s.desc())
        .limit(most)
    )
    with database.transaction() as connection:
        rows = connection.execute(wanted).all()
    return tuple(status_of(parsed(row.status)) for row in rows)


def num_by_phase(database: Database, service: str) -> dict[Phase, int]:
    """How many rollouts stand in each phase, those that are over too."""
    with database.transaction() as connection:
        phase = _phase(connection).label("phase")
        counted = select(phase, func.count().label("num")).where(ROLLOUTS.c.service == service)
        rows = connection.execute(counted.group_by(phase)).all()
    return {Phase(row.phase): int(row.num) for row in rows}


def _phase(connection: Connection) -> ColumnElement[str]:
    """Out of the status by the database itself: a status is some kB, and there may be many."""
    if connection.dialect.name == "sqlite":
        return func.json_extract(ROLLOUTS.c.status, "$.phase")
    return func.json_extract_path_text(cast(ROLLOUTS.c.status, JSON), "phase")
