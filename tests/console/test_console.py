"""The console in a gateway that serves: one look for all, and what dies is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from http_site import Site

from outrider.bulk.glance import JobGlance, JobState
from outrider.config.schema import ConsoleSettings, GateSettings, PlanSettings
from outrider.console.console import Beside, Console
from outrider.console.order import Order
from outrider.console.ports import RolloutsSeen
from outrider.console.rollouts import StoredRollouts
from outrider.core import Fault, UserError
from outrider.rollout.command import Verb
from outrider.rollout.database import Database
from outrider.rollout.phase import Phase
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Store
from outrider.tracking.store_uri import sqlite_uri

QUICK = ConsoleSettings(url="http://127.0.0.1:8000", period_s=0.05, keep_s=60.0)
WAIT_S = 20.0
JOB = JobGlance(
    name="nightly",
    job_dir="/srv/nightly",
    state=JobState.RUNNING,
    num_rows=10,
    num_rows_done=4,
    num_rows_failed=0,
    began_s=1.0,
    at_s=2.0,
)


@dataclass
class Jobs:
    """`BulkJobs` that counts, and fails when told to."""

    num_looks: int = 0
    is_dead: bool = False

    def look(self) -> tuple[JobGlance, ...]:
        self.num_looks += 1
        if self.is_dead:
            raise Fault("the disk is gone")
        return (JOB,)


@dataclass
class Broken:
    """`Rollouts` that answers nobody."""

    def look(self) -> RolloutsSeen:
        raise KeyError("a password")

    def order(self, order: Order) -> str:
        raise Fault("the database of rollouts: nobody answers")


ABORT = {"verb": "abort", "rollout_id": "r-1"}


def opened(beside: Beside, *, look_s: float = 0.05) -> tuple[Site, Console]:
    console = Console(QUICK, beside, {}, look_s=look_s)
    return Site(service_fields={"additions": (console,)}), console


def data(site: Site, after_s: float = 0.0) -> dict[str, Any]:
    answer = httpx.get(f"{site.url}/console/data", params={"after": after_s})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def until(site: Site, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    ends_s = time.monotonic() + WAIT_S
    while not holds(told := data(site)):
        assert time.monotonic() < ends_s, told
        time.sleep(0.02)
    return told


def say_alphabet(site: Site) -> None:
    body = {"model": "alphabet", "prompt": "go a", "max_tokens": 20}
    assert httpx.post(f"{site.url}/v1/completions", json=body).status_code == 200


def test_what_is_decoded_is_on_the_page() -> None:
    site, _ = opened(Beside())
    with site:
        until(site, lambda told: bool(told["replicas"]))
        say_alphabet(site)
        told = until(site, lambda told: sum(each["emitted"] for each in told["points"]) >= 20)
        busy = [each for each in told["points"] if each["emitted"]]
        assert {each["release"] for each in busy} == {"main"}
        assert sum(sum(each["rounds_by_draft_length"]) for each in busy) == sum(
            each["num_rounds"] for each in busy
        )
        assert sum(each["rounds_s"] for each in busy) > 0
        (replica,) = told["replicas"]
        assert (replica["release"], replica["mode"]) == ("main", "speculative")
        assert replica["breaker_phase"] == "closed"
        assert replica["max_waiting"] == site.settings.max_queue
        (release,) = told["releases"]
        assert (release["health"], release["fingerprint"]) == ("ready", "fp")
        (arm,) = told["arms"]
        assert (arm["arm"], arm["weight"]) == ("stable", 1.0)
        assert (arm["achieved_ratio"], arm["num_requests"]) == (1.0, 1)
        assert told["notes"] == []
        assert told["rollout"] is None


def test_two_pages_cost_no_more_looks_than_none() -> None:
    jobs = Jobs()
    site, _ = opened(Beside(jobs=jobs), look_s=600.0)
    with site:
        until(site, lambda told: bool(told["jobs"]))
        for _ in range(10):
            assert data(site)["jobs"][0]["name"] == "nightly"
        httpx.get(f"{site.url}/metrics")
        assert jobs.num_looks == 1


def test_a_source_that_dies_is_named_and_its_last_word_is_not_shown() -> None:
    jobs = Jobs()
    site, console = opened(Beside(jobs=jobs, rollouts=Broken()))
    with site:
        told = until(site, lambda told: bool(told["jobs"]) and bool(told["notes"]))
        assert told["notes"] == ["rollouts: can't be read now (KeyError)"]
        jobs.is_dead = True
        told = until(site, lambda told: not told["jobs"])
        assert "bulk jobs: the disk is gone" in told["notes"]
        names = {family.name for family in console.collect()}
        assert "outrider_release_info" in names
        assert not any(name.startswith("outrider_bulk") for name in names)
        jobs.is_dead = False
        assert until(site, lambda told: bool(told["jobs"]))["jobs"][0]["num_rows_done"] == 4
        ordered = httpx.post(f"{site.url}/console/orders", json=ABORT)
        assert ordered.status_code == 503
        assert "nobody answers" in ordered.json()["error"]["message"]


def test_a_replica_that_does_not_answer_is_said_and_is_a_gap() -> None:
    site, _ = opened(Beside())
    with site:
        until(site, lambda told: bool(told["points"]))
        site.release.lose("r0")
        told = until(site, lambda told: not told["replicas"])
        assert told["notes"] == ["Release main: no replica runs."]
        assert told["releases"][0]["num_replicas"] == 0
        num_points = len(data(site)["points"])
        time.sleep(0.2)
        assert len(data(site)["points"]) == num_points


def begun(store: Store) -> Status:
    status = Status(
        rollout_id="r-1",
        service=QUICK.url,
        candidate=Candidate(name="next", fingerprint="b" * 64),
        stable="main",
        stable_fingerprint="fp",
        began_s=time.time(),
        since_s=time.time(),
        phase=Phase.CANARY,
    )
    store.begin(status, PlanSettings(), GateSettings())
    return status


def test_an_order_reaches_the_database_and_is_refused_where_it_makes_no_sense(
    tmp_path: Path,
) -> None:
    url = sqlite_uri(tmp_path / "rollouts.db")
    site, _ = opened(Beside(rollouts=StoredRollouts(url, QUICK.url)))
    with site:
        until(site, lambda told: told["rollout"] is None)
        early = httpx.post(f"{site.url}/console/orders", json=ABORT)
        assert (early.status_code, list(tmp_path.iterdir())) == (400, [])
        store = Store(Database(url))
        status = begun(store)
        told = until(site, lambda told: told["rollout"] is not None)
        assert told["rollout"]["candidate"] == "next"
        assert told["rollout"]["is_controlled"] is False
        assert "pause" in told["rollout"]["verbs"]
        body = {**ABORT, "verb": "pause", "reason": "lunch\x1b[2J", "who": "ada"}
        answer = httpx.post(f"{site.url}/console/orders", json=body)
        assert answer.status_code == 200
        assert "nobody controls it now" in answer.json()["said"]
        (command,) = store.commands(status.rollout_id, waiting=True)
        assert (command.verb, command.who) == (Verb.PAUSE, "ada")
        assert command.why.startswith("lunch")
        refused = httpx.post(f"{site.url}/console/orders", json={**ABORT, "verb": "resume"})
        assert refused.status_code == 400
        assert "resume" in refused.json()["error"]["message"]
        late = httpx.post(f"{site.url}/console/orders", json={**ABORT, "rollout_id": "r-0"})
        assert late.status_code == 400
        assert "r-0 is over" in late.json()["error"]["message"]
        page = httpx.get(f"{site.url}/metrics").text
        assert "lunch" not in page
        store.database.close()


def test_no_rollout_takes_no_order() -> None:
    site, _ = opened(Beside())
    with site:
        answer = httpx.post(f"{site.url}/console/orders", json=ABORT)
        assert answer.status_code == 400
        assert "no active rollout" in answer.json()["error"]["message"]
    with pytest.raises(UserError):
        Beside().rollouts.order(Order(verb=Verb.ABORT, rollout_id="r-1"))
