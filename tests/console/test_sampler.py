"""Who looks at the releases is held up by none of them, and by no error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from bare_service import bare_service

from outrider.console.sampler import Sampler
from outrider.core import Counters, Fault, Mode, SystemClock
from outrider.serving.health import Condition, Health
from outrider.serving.local import ScriptedRelease
from outrider.serving.messages import ReplicaStats
from outrider.serving.service import Service

WAIT_S = 20.0


class Told(ScriptedRelease):
    """A release of one replica, which emits a token a look; or which never answers."""

    def __init__(self, name: str, *, hangs: bool = False) -> None:
        super().__init__()
        self.name = name
        self.hangs = hangs
        self.num_looks = 0
        self.error: Exception | None = None

    async def stats(self) -> list[ReplicaStats]:
        self.num_looks += 1
        if self.hangs:
            await asyncio.sleep(600)
        if self.error is not None:
            raise self.error
        counters = Counters(emitted=self.num_looks, num_rounds=self.num_looks)
        told = ReplicaStats(release=self.name, replica="r0", mode=Mode.PLAIN, counters=counters)
        return [replace(told, breaker_phase="closed")]


@dataclass
class Deployer:
    """All of them run; it may keep silent about that."""

    releases: dict[str, Told]
    error: Exception | None = None

    async def conditions(self, names: Collection[str]) -> dict[str, Condition]:
        if self.error is not None:
            raise self.error
        return {name: Condition(Health.READY) for name in names}

    async def start(self, name: str, settings: Mapping[str, Any], cpus: int) -> None: ...

    async def stop(self, name: str) -> None: ...

    def open(self, name: str) -> Told:
        return self.releases[name]


def play(deployer: Deployer, *steps: Callable[[Sampler, Service], bool]) -> Sampler:
    """Look until each step holds in turn."""

    async def story() -> Sampler:
        sampler = Sampler(period_s=0.005, keep_s=60.0, clock=SystemClock())
        service = bare_service(deployer, deployer.releases)
        task = asyncio.ensure_future(sampler.run(service))
        try:
            async with asyncio.timeout(WAIT_S):
                for step in steps:
                    while not step(sampler, service):
                        await asyncio.sleep(0.005)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return sampler

    return asyncio.run(story())


def num_points(sampler: Sampler, release: str) -> int:
    return sum(point.release == release for point in sampler.course.points)


def test_a_release_that_hangs_holds_up_no_other_one() -> None:
    hung = Told("hung", hangs=True)
    sampler = play(
        Deployer({"main": Told("main"), "hung": hung}),
        lambda sampler, service: num_points(sampler, "main") >= 5,
    )
    assert (num_points(sampler, "hung"), hung.num_looks) == (0, 1)
    assert sampler.notes == ()  # its time is not over yet


def test_any_error_is_a_gap_that_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    main = Told("main")

    def breaks(sampler: Sampler, service: Service) -> bool:
        if num_points(sampler, "main") < 2:
            return False
        main.error = RuntimeError("a secret")
        return "Release main: RuntimeError." in sampler.notes and main.num_looks > 8

    def mends(sampler: Sampler, service: Service) -> bool:
        main.error = None
        return sampler.notes == () and num_points(sampler, "main") >= 5

    with caplog.at_level(logging.WARNING):
        play(Deployer({"main": main}), breaks, mends)
    assert caplog.messages == ["the console can't look: Release main: RuntimeError."]


def test_replicas_are_looked_at_while_serve_keeps_silent() -> None:
    deployer = Deployer({"main": Told("main")}, error=Fault("no controller"))
    sampler = play(deployer, lambda sampler, service: num_points(sampler, "main") >= 3)
    assert sampler.notes == ("Serve does not say how the releases are (Fault).",)
    assert sampler.conditions == {}


def test_a_release_that_was_taken_away_is_forgotten() -> None:
    gone = Told("gone")

    def takes_away(sampler: Sampler, service: Service) -> bool:
        if num_points(sampler, "gone") < 2:
            return False
        service.desk.releases.pop("gone", None)
        service.fleet.cards.pop("gone", None)
        return "gone" not in sampler.stats

    sampler = play(Deployer({"main": Told("main"), "gone": gone}), takes_away)
    assert "gone" not in sampler.course.last
    assert num_points(sampler, "gone") >= 2  # the charts still show what it did
