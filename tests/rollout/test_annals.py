"""Rollouts of a database that is only visited: SQLite, and PostgreSQL where it is installed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rollout_stand import CANDIDATE, PLAN, URL
from servers import Postgres

from outrider.config.schema import GateSettings
from outrider.core import Fault, UserError
from outrider.rollout.annals import ended, num_by_phase
from outrider.rollout.database import Database
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.rollout.store import Store
from outrider.rollout.tables import ROLLOUTS
from outrider.tracking.store_uri import sqlite_uri

VISIT_S = 2.0


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_uri(tmp_path / "a folder" / "rollouts%20.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.uri(f"annals_{abs(hash(request.node.name)) % 10**8}")


@pytest.fixture
def visit(url: str) -> Iterator[Database]:
    database = Database(url, visit_s=VISIT_S)
    yield database
    database.close()


def begun(number: int, service: str = URL) -> Status:
    return Status(
        rollout_id=f"{service[-1]}{number}",
        service=service,
        candidate=replace(CANDIDATE, settings={"phase": "failed", "why": '"phase":"failed"'}),
        stable="stable",
        stable_fingerprint="fingerprint-of-stable",
        began_s=float(number),
        since_s=float(number),
    )


def write(store: Store, status: Status, phase: Phase) -> None:
    found = store.begin(status, PLAN, GateSettings())
    store.commit(replace(found, status=replace(status, phase=phase)))


def test_those_that_are_over_come_newest_first_and_all_are_counted(
    url: str, visit: Database
) -> None:
    assert not visit.is_there
    made = Database(url)
    store = Store(made)
    assert visit.is_there
    assert (ended(visit, URL, 5), num_by_phase(visit, URL)) == ((), {})
    ends = [Phase.ROLLED_BACK, Phase.PROMOTED, Phase.ROLLED_BACK]
    for number, phase in enumerate(ends):
        write(store, begun(number), phase)
    write(store, begun(3), Phase.CANARY)
    write(store, begun(4, "http://another"), Phase.ABORTED)
    found = ended(visit, URL, 2)
    assert [(each.rollout_id[1:], each.phase) for each in found] == [
        ("2", Phase.ROLLED_BACK),
        ("1", Phase.PROMOTED),
    ]
    assert num_by_phase(visit, URL) == {Phase.ROLLED_BACK: 2, Phase.PROMOTED: 1, Phase.CANARY: 1}
    made.close()


def test_a_visit_makes_nothing(url: str, visit: Database, tmp_path: Path) -> None:
    for _ in range(2):
        assert not visit.is_there
        visit.close()
    assert not list(tmp_path.iterdir())
    made = Database(url)
    made.close()
    assert visit.is_there


def test_a_file_that_goes_between_two_questions_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    Database(sqlite_uri(path)).close()
    visit = Database(sqlite_uri(path), visit_s=VISIT_S)
    assert visit.is_there
    visit.close()
    path.unlink()
    with pytest.raises(Fault, match="unable to open"):
        ended(visit, URL, 1)
    assert not path.exists()


def test_a_file_without_tables_holds_no_rollouts(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    path.touch()
    visit = Database(sqlite_uri(path), visit_s=VISIT_S)
    assert not visit.is_there
    visit.close()
    assert path.read_bytes() == b""


def test_a_visit_does_not_wait_for_long() -> None:
    """Somebody listens there, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        visit = Database(f"postgresql://ada:s3cret@127.0.0.1:{port}/rollouts", visit_s=VISIT_S)
        began = time.monotonic()
        with pytest.raises(Fault, match="the database of rollouts") as away:
            _ = visit.is_there
    assert time.monotonic() - began < 10 * VISIT_S
    assert "s3cret" not in str(away.value)
    assert "\n" not in str(away.value)


def test_a_busy_file_is_not_waited_for_for_long(tmp_path: Path) -> None:
    made = Database(sqlite_uri(tmp_path / "rollouts.db"))
    visit = Database(sqlite_uri(tmp_path / "rollouts.db"), visit_s=0.1)
    with made.transaction() as connection:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
        with pytest.raises(Fault, match="locked"):
            _ = visit.is_there
    assert visit.is_there
    for database in (made, visit):
        database.close()


def test_a_table_that_somebody_holds_is_not_waited_for_for_long(postgres: Postgres) -> None:
    url = postgres.uri("held_annals")
    made, visit = Database(url), Database(url, visit_s=0.1)
    with made.transaction() as connection:
        connection.exec_driver_sql(f"LOCK TABLE {ROLLOUTS.name} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Fault, match="statement timeout"):
            ended(visit, URL, 1)
    assert ended(visit, URL, 1) == ()
    for database in (made, visit):
        database.close()


def test_an_address_that_is_none_is_refused_by_its_key() -> None:
    with pytest.raises(UserError, match=r"rollout\.database"):
        Database("sqlite:///relative.db", visit_s=VISIT_S)
