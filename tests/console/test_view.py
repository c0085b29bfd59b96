"""A snapshot says what was read and what the gateway knows itself; what is unknown is null."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from bare_service import bare_service
from scene import scene

from outrider.config.schema import ConsoleSettings
from outrider.console.course import Course
from outrider.console.plain import plain
from outrider.console.reading import Reading
from outrider.console.snapshot import RunsView, Snapshot
from outrider.console.view import Server, snapshot
from outrider.core import Fault, Mode
from outrider.serving.deployer import LocalDeployer
from outrider.serving.health import Condition, Health
from outrider.serving.keys import Keys
from outrider.serving.local import LocalRelease
from outrider.serving.messages import ReplicaStats
from outrider.serving.service import Service
from outrider.serving.split import Arm, Choice, Plan

SERVER = Server(
    settings=ConsoleSettings(url="http://127.0.0.1:8000"),
    runs=RunsView(),
    version="1",
    began_s=5.0,
)
NOTHING = Reading(course=Course(60.0))


def no_other(name: str, settings: object) -> LocalRelease:
    raise Fault(name)


@pytest.fixture
def service() -> Service:
    """Release main, and one that is tried beside it."""
    releases = {name: LocalRelease(name, ()) for name in ("main", "beside")}
    return bare_service(LocalDeployer(no_other, releases.values()), releases)


def shown(service: Service, reading: Reading = NOTHING) -> Snapshot:
    return snapshot(SERVER, service, reading, at_s=9.0)


def test_before_anything_was_read_there_is_a_snapshot(service: Service) -> None:
    told = shown(service)
    assert (told.at_s, told.service.began_s, told.service.model) == (9.0, 5.0, "alphabet")
    assert [(each.name, each.health) for each in told.releases] == [
        ("main", "unknown"),
        ("beside", "unknown"),
    ]
    assert [(each.arm, each.weight, each.achieved_ratio) for each in told.arms] == [
        ("stable", 1.0, None)
    ]
    assert (told.replicas, told.points, told.rollout, told.jobs) == ((), (), None, ())


def test_arms_have_the_share_that_they_got(service: Service) -> None:
    desk = service.desk
    desk.put(Plan(stable="main", candidate="beside", weight=0.25, salt="s", revision=1))
    for arm, release, num in ((Arm.STABLE, "main", 3), (Arm.CANDIDATE, "beside", 2)):
        for _ in range(num):
            desk.shares.count(Choice(release, arm))
    stable, candidate = shown(service).arms
    assert (stable.release, stable.weight, stable.achieved_ratio) == ("main", 0.75, 0.6)
    assert (candidate.release, candidate.weight, candidate.num_requests) == ("beside", 0.25, 2)


def test_a_candidate_stands_behind_stable_and_says_why_it_failed(service: Service) -> None:
    service.desk.put(Plan(stable="main", candidate="beside", revision=1))
    failed = Condition(Health.FAILED, "model.dtype: no")
    reading = replace(
        NOTHING, conditions={"beside": failed, "main": Condition(Health.READY)}, notes=("a",)
    )
    told = shown(service, reading)
    assert [(each.name, each.health, each.message) for each in told.releases] == [
        ("main", "ready", ""),
        ("beside", "failed", "model.dtype: no"),
    ]
    assert told.releases[1].fingerprint == "fp-beside"
    assert told.notes == ("a",)


def test_an_engine_that_does_not_answer_is_not_called_closed(service: Service) -> None:
    stats = ReplicaStats(release="main", replica="r0", mode=Mode.PLAIN, num_waiting=3)
    told = shown(service, replace(NOTHING, stats={"main": (stats,)}))
    (replica,) = told.replicas
    assert (replica.breaker_phase, replica.mode, replica.num_waiting) == ("", "plain", 3)
    assert replica.breaker_sentence == "Its engine does not answer."
    assert told.releases[0].num_replicas == 1


def test_it_says_whether_a_key_is_needed(service: Service) -> None:
    assert not shown(service).needs_key
    assert shown(replace(service, admin_keys=Keys(frozenset({"k"})))).needs_key


def test_a_browser_can_read_every_number() -> None:
    told = scene()
    assert told.rollout is not None
    strange = replace(told.rollout.findings[0], low=-math.inf, estimate=math.nan)
    told = replace(told, rollout=replace(told.rollout, findings=(strange,)))
    written: dict[str, Any] = json.loads(json.dumps(plain(told), allow_nan=False))
    assert written["rollout"]["findings"][0]["low"] is None
    assert written["rollout"]["findings"][0]["estimate"] is None
    assert written["rollout"]["verbs"] == ["abort", "pause", "promote"]
    assert written["rollout"]["moves"][-1]["phase"] == "canary"
    assert written["points"][0]["rounds_by_draft_length"]
    assert written["jobs"][0]["state"] == "running"
