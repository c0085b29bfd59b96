"""The watch over a gateway's releases: who is asked, who is told, and what becomes known of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from outrider.config.schema import ServingSettings
from outrider.core import Fault, Mode
from outrider.engine.draft_sums import DraftSums
from outrider.serving.guard_record import GuardRecord
from outrider.serving.guard_state import Phase
from outrider.serving.local import ScriptedRelease
from outrider.serving.messages import Control, Pulse
from outrider.serving.watch import Watch
from outrider.testing import ManualClock, MemoryTracker

SETTINGS = ServingSettings(
    fallback_min_acceptance=0.2,
    fallback_window_s=10.0,
    fallback_min_drafted=100,
    fallback_wait_s=30.0,
)


class DraftingRelease(ScriptedRelease):
    """Replicas that draft by hand and do what they are told."""

    def __init__(self, name: str = "main", *replicas: str) -> None:
        super().__init__(())
        self.name = name
        self.drafts = dict.fromkeys(replicas or ("a", "b"), DraftSums())
        self.controls = dict.fromkeys(self.drafts, Control())
        self.deaf: set[str] = set()
        self.told: list[Control] = []
        self.num_pulses = 0

    def draft(self, drafted: int, accepted: int) -> None:
        more = DraftSums(drafted, accepted)
        self.drafts = {name: sums + more for name, sums in self.drafts.items()}

    async def pulses(self) -> list[Pulse]:
        self.num_pulses += 1
        return [
            Pulse(replica=name, control=self.controls[name], drafts=sums)
            for name, sums in self.drafts.items()
        ]

    async def control(self, control: Control) -> None:
        self.told.append(control)
        for name in self.controls.keys() - self.deaf:
            self.controls[name] = control
        if self.deaf:
            raise Fault("a replica did not answer")


class Stand:
    """A watch whose clock is turned by hand."""

    def __init__(self, *releases: DraftingRelease, settings: ServingSettings = SETTINGS) -> None:
        self.clock = ManualClock(1000.0)
        self.releases = {each.name: each for each in releases}
        self.watch = Watch(lambda: self.releases, settings, self.clock)

    async def look(self, seconds: int, drafted: int, accepted: int) -> None:
        """A look at each release every second."""
        for _ in range(seconds):
            self.clock.advance(1.0)
            for release in self.releases.values():
                release.draft(drafted, accepted)
                await self.watch.look(release)

    def phase(self, name: str = "main") -> str:
        return str(self.watch.told()[name]["phase"])


def story(tell: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(tell())

    run.__name__ = tell.__name__
    return run


async def within(what: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():
            await asyncio.sleep(0.01)


@story
async def test_all_replicas_are_told_at_the_look_that_shows_it() -> None:
    release = DraftingRelease()
    stand = Stand(release)
    await stand.look(20, 20, 15)
    assert release.told == []
    await stand.look(11, 20, 0)
    assert {each.mode for each in release.controls.values()} == {Mode.PLAIN}
    assert len(release.told) == 1
    told = stand.watch.told()["main"]
    assert (told["phase"], told["transitions"]["open"]) == ("open", 1)
    assert told["sentence"] == Phase.OPEN.sentence
    assert 1020.0 < told["since_s"] <= 1031.0


@story
async def test_each_transition_is_listed_with_its_reason_and_recorded_in_the_run() -> None:
    release = DraftingRelease()
    stand = Stand(release)
    run = MemoryTracker().start_run("serve main", "serve", {})
    record = GuardRecord(run, began_s=1000.0)
    await stand.look(11, 20, 0)
    record.see(stand.watch.transitions(record.last_s))
    await stand.look(30, 0, 0)
    await stand.look(5, 20, 20)
    record.see(stand.watch.transitions(record.last_s))
    record.see(stand.watch.transitions(record.last_s))
    phases = [each.phase for each in stand.watch.transitions()]
    assert phases == [Phase.OPEN, Phase.PROBING, Phase.CLOSED]
    assert all(each.reason for each in stand.watch.transitions())
    assert [metrics for _, _, metrics in run.windows] == [
        {"window.guard_phase/main": level} for level in (2.0, 1.0, 0.0)
    ]
    assert run.windows[0][0] == round(run.windows[0][1] - 1000.0)
    assert len(run.artifacts["guard.jsonl"].splitlines()) == 3
    assert run.tags["guard.num_falls"] == "1"
    assert run.tags["guard.main"].startswith("closed: probes")


@story
async def test_a_replica_that_missed_it_or_came_later_is_told_again() -> None:
    release = DraftingRelease()
    release.deaf = {"b"}
    stand = Stand(release)
    await stand.look(11, 20, 0)
    assert [each.mode for each in release.controls.values()] == [Mode.PLAIN, Mode.SPECULATIVE]
    release.deaf = set()
    release.controls["c"], release.drafts["c"] = Control(), DraftSums()
    await stand.look(1, 0, 0)
    assert {each.mode for each in release.controls.values()} == {Mode.PLAIN}
    num_told = len(release.told)
    await stand.look(5, 0, 0)
    assert len(release.told) == num_told


@story
async def test_an_operators_word_goes_through_at_once_and_holds() -> None:
    release = DraftingRelease()
    stand = Stand(release)
    await stand.look(11, 20, 0)
    plain = Control(mode=Mode.PLAIN)
    await stand.watch.control(release, plain)
    await stand.look(200, 0, 0)
    assert set(release.controls.values()) == {plain}
    assert [each.phase for each in stand.watch.transitions()] == [Phase.OPEN, Phase.CLOSED]
    assert "operator" in stand.watch.transitions()[-1].reason


@story
async def test_a_candidate_falls_alone_and_is_forgotten_when_it_is_gone() -> None:
    stable, candidate = DraftingRelease("main"), DraftingRelease("next")
    stand = Stand(stable, candidate)
    for _ in range(11):
        stable.draft(0, 20)  # so that of 20 + 20 tokens it accepts more than the candidate
        await stand.look(1, 20, 0)
    assert (stand.phase("main"), stand.phase("next")) == ("closed", "open")
    assert {each.mode for each in stable.controls.values()} == {Mode.SPECULATIVE}
    del stand.releases["next"]
    async with stand.watch.running():
        await within(lambda: "next" not in stand.watch.told())


@story
async def test_a_new_gateway_finds_the_release_as_it_was() -> None:
    release = DraftingRelease()
    await Stand(release).look(11, 20, 0)
    later = Stand(release)
    await later.look(1, 0, 0)
    assert later.phase() == "open"
    assert later.watch.transitions() == []
    await later.look(30, 0, 0)
    assert later.phase() == "probing"
    assert {each.probe_share for each in release.controls.values()} == {0.1}


@story
async def test_a_release_is_asked_once_a_period_and_one_that_hangs_holds_up_no_other() -> None:
    class HangingRelease(DraftingRelease):
        async def pulses(self) -> list[Pulse]:
            self.num_pulses += 1
            await asyncio.Event().wait()
            raise AssertionError

    quick, hanging = DraftingRelease("main"), HangingRelease("next")
    releases = {each.name: each for each in (hanging, quick)}
    watch = Watch(lambda: releases, SETTINGS, period_s=0.05)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with watch.running():
        await within(lambda: quick.num_pulses == 5)
        assert loop.time() - began_s >= 4 * 0.05
        assert hanging.num_pulses == 1
    count = quick.num_pulses
    await asyncio.sleep(0.1)
    assert quick.num_pulses == count  # closed: it asks no more


@story
async def test_a_release_that_breaks_is_looked_at_again() -> None:
    class BreakingRelease(DraftingRelease):
        async def pulses(self) -> list[Pulse]:
            told = await super().pulses()
            if self.num_pulses < 3:
                raise ConnectionError("no replica")
            return told

    release = BreakingRelease()
    watch = Watch(lambda: {"main": release}, SETTINGS, period_s=0.01)
    async with watch.running():
        await within(lambda: "main" in watch.told())


@story
async def test_where_it_is_off_nobody_is_asked_and_an_operator_is_heard() -> None:
    release = DraftingRelease()
    watch = Watch(lambda: {"main": release}, ServingSettings(fallback=False), period_s=0.01)
    async with watch.running():
        await watch.control(release, Control(mode=Mode.PLAIN))
        await asyncio.sleep(0.05)
    assert (release.num_pulses, watch.told()) == (0, {})
    assert release.told == [Control(mode=Mode.PLAIN)]


@story
async def test_an_operator_hears_that_a_replica_did_not() -> None:
    release = DraftingRelease()
    release.deaf = {"b"}
    stand = Stand(release)
    with pytest.raises(Fault, match="did not answer"):
        await stand.watch.control(release, Control(mode=Mode.PLAIN))
    release.deaf = set()
    await stand.look(1, 0, 0)
    assert {each.mode for each in release.controls.values()} == {Mode.PLAIN}
