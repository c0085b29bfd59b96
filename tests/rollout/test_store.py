"""Rollouts in a database: SQLite, and PostgreSQL where it is installed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rollout_stand import CANDIDATE, PLAN, URL, another_process
from servers import Postgres

from outrider.config.schema import GateSettings, OnStall
from outrider.core import Fault, UserError
from outrider.rollout.command import Command, Verb
from outrider.rollout.database import Database
from outrider.rollout.lease import LEASE_S, Lease
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move, Status
from outrider.rollout.store import LostError, Store
from outrider.rollout.sums import Sums
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.serving.sample import Cursor, Reading, Sample
from outrider.serving.split import Arm
from outrider.testing import ManualClock
from outrider.tracking.process import Process
from outrider.tracking.store_uri import sqlite_uri

STATUS = Status(
    rollout_id="one",
    service=URL,
    candidate=CANDIDATE,
    stable="stable",
    stable_fingerprint="fingerprint-of-stable",
    began_s=1.1,
    since_s=2.3,
)
GATES = GateSettings(alpha=0.1 + 0.2)
MOVE = Move(
    phase=Phase.CANARY,
    step=1,
    weight=0.1 + 0.2,
    reason="why not, ü",
    at_s=3.3,
    evidence=({"figure": "tokens_per_s", "verdict": "pass", "low": None},),
)
FOUND = Finding(figure="total_s", verdict=Verdict.FAIL, bound=1.25, reason="slow", low=1 / 3)


Open = Callable[[str], Database]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens databases, and closes their connections behind the test."""
    databases: list[Database] = []

    def open_it(url: str) -> Database:
        databases.append(Database(url))
        return databases[-1]

    yield open_it
    for database in databases:
        database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_uri(tmp_path / "rollouts.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.uri(f"rollouts_{abs(hash(request.node.name)) % 10**8}")


def test_what_is_written_comes_back_exactly(url: str, opened: Open) -> None:
    plan = replace(PLAN, approvals=(0.25,), on_stall=OnStall.MANUAL)
    store = Store(opened(url))
    begun = store.begin(STATUS, plan, GATES)
    sample = Sample(arm=Arm.CANDIDATE, num_tokens=7, num_rounds=3, total_s=0.1 + 0.2)
    changed = replace(
        begun,
        status=replace(STATUS, phase=Phase.CANARY, revision=2),
        sums=Sums().after(Reading(cursor=Cursor(), samples=(sample,))),
        cursor=Cursor(epoch="here", number=2**40),
        judgement=Judgement(findings=(FOUND,)),
    )
    kept = store.commit(changed, [MOVE])
    again = Store(opened(url))
    assert again.get("one") == kept == again.active(URL)
    assert again.get("one").plan == plan
    assert again.get("one").gates == GATES
    assert again.moves("one") == (MOVE,)


def test_a_writer_whose_reading_is_old_changes_nothing(url: str, opened: Open) -> None:
    store = Store(opened(url))
    read = store.begin(STATUS, PLAN, GATES)
    store.commit(replace(read, status=replace(STATUS, reason="first")), [MOVE])
    command = store.order("one", Command(verb=Verb.ABORT, who="ada", at_s=1.0))
    with pytest.raises(LostError):
        store.commit(replace(read, status=replace(STATUS, reason="late")), [MOVE], [command])
    assert store.get("one").status.reason == "first"
    assert len(store.moves("one")) == 1
    assert store.commands("one", waiting=True) == (command,)


def test_of_many_starters_at_once_one_begins(url: str, opened: Open) -> None:
    stores = [Store(opened(url)) for _ in range(6)]
    came: list[str] = []

    def begin(number: int) -> None:
        try:
            stores[number].begin(replace(STATUS, rollout_id=str(number)), PLAN, GATES)
        except UserError:
            came.append("refused")
        else:
            came.append("begun")

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(came) == ["begun", *["refused"] * 5]


def test_the_next_one_begins_when_the_last_one_is_over(url: str, opened: Open) -> None:
    store = Store(opened(url))
    first = store.begin(STATUS, PLAN, GATES)
    store.commit(replace(first, status=replace(STATUS, phase=Phase.ABORTED)))
    store.begin(replace(STATUS, rollout_id="two", began_s=9.0), PLAN, GATES)
    assert [each.status.rollout_id for each in store.history(URL)] == ["two", "one"]
    newest = store.newest(URL)
    assert newest is not None
    assert newest.status.rollout_id == "two"
    assert store.active("http://another") is None


def test_superseding_is_one_transaction(url: str, opened: Open) -> None:
    store = Store(opened(url))
    first = store.begin(STATUS, PLAN, GATES)
    ended = replace(STATUS, phase=Phase.SUPERSEDED)
    store.commit(first)  # somebody else was quicker
    second = replace(STATUS, rollout_id="two")
    with pytest.raises(LostError):
        store.begin(second, PLAN, GATES, superseded=(first, ended, (MOVE,)))
    assert store.get("one").status.phase is Phase.PENDING
    store.begin(second, PLAN, GATES, superseded=(store.get("one"), ended, (MOVE,)))
    assert store.get("one").status.phase is Phase.SUPERSEDED
    active = store.active(URL)
    assert active is not None
    assert active.status.rollout_id == "two"


def test_commands_are_taken_once_and_in_order(url: str, opened: Open) -> None:
    store = Store(opened(url))
    rollout = store.begin(STATUS, PLAN, GATES)
    for verb in (Verb.PAUSE, Verb.RESUME):
        store.order("one", Command(verb=verb, who="ada@ship", why="because", at_s=5.5))
    waiting = store.commands("one", waiting=True)
    assert [command.verb for command in waiting] == [Verb.PAUSE, Verb.RESUME]
    store.commit(rollout, taken=waiting[:1])
    assert store.commands("one", waiting=True) == waiting[1:]
    assert store.commands("one") == waiting


def test_notes_are_of_one_rollout(url: str, opened: Open) -> None:
    store = Store(opened(url))
    store.begin(STATUS, PLAN, GATES)
    store.keep("one", "run:canary-1", "abc")
    store.keep("one", "run:canary-1", "def")
    assert store.note("one", "run:canary-1") == "def"
    assert store.note("two", "run:canary-1") == ""
    assert store.num_noted(CANDIDATE.fingerprint, "run:canary-1", but="") == 1
    assert store.num_noted(CANDIDATE.fingerprint, "run:canary-1", but="one") == 0


def test_a_lease_is_one_process_s_until_it_expires(url: str, opened: Open) -> None:
    database, clock = opened(url), ManualClock(100.0)
    one = Lease(database, URL, another_process(1), clock)
    two = Lease(database, URL, another_process(2), clock)
    one.take()
    assert two.is_anothers()
    with pytest.raises(UserError, match="process 1 on machine-1"):
        two.take()
    clock.advance(LEASE_S - 1)
    one.renew()
    clock.advance(LEASE_S - 1)
    with pytest.raises(UserError):
        two.take()
    clock.advance(1.0)
    two.take()
    with pytest.raises(LostError):
        one.renew()
    one.give_back()  # not its own any more
    two.renew()


def test_a_lease_of_a_process_that_is_gone_is_free_at_once(tmp_path: Path, opened: Open) -> None:
    database, clock = opened(sqlite_uri(tmp_path / "r.db")), ManualClock()
    gone = replace(Process.current(), pid="999999999", started="1")
    Lease(database, URL, gone, clock).take()
    Lease(database, URL, Process.current(), clock).take()


def test_of_many_processes_one_takes_an_expired_lease(url: str, opened: Open) -> None:
    database, clock = opened(url), ManualClock(100.0)
    leases = [Lease(opened(url), URL, another_process(number), clock) for number in range(6)]
    Lease(database, URL, another_process(99), clock).take()
    clock.advance(LEASE_S)
    taken: list[Lease] = []

    def take(lease: Lease) -> None:
        try:
            lease.take()
        except UserError:
            return
        taken.append(lease)

    threads = [threading.Thread(target=take, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_a_database_that_comes_back_is_used_again(postgres: Postgres, opened: Open) -> None:
    store = Store(opened(postgres.uri("outage")))
    store.begin(STATUS, PLAN, GATES)
    postgres.kill()
    with pytest.raises(Fault, match="the database of rollouts"):
        store.get("one")
    postgres.start()
    assert store.get("one").status == STATUS


@pytest.mark.parametrize(
    "address",
    [
        "sqlite:///relative.db",
        "sqlite://",
        "mysterious://somewhere/x",
        "no address",
        "postgresql://ada:s3cret@[broken/x",
    ],
)
def test_an_address_that_is_none_is_refused_by_its_key(address: str) -> None:
    with pytest.raises(UserError, match=r"rollout\.database") as refused:
        Database(address)
    assert "s3cret" not in str(refused.value)


def test_a_password_is_told_by_nobody() -> None:
    with pytest.raises(Fault) as away:
        Database("postgresql://ada:s3cret@127.0.0.1:1/rollouts")
    assert "s3cret" not in str(away.value)
    assert "ada:***@127.0.0.1" in str(away.value)
