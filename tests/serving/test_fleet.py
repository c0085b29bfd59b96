"""Plan and releases outlive the gateway; another service begins anew."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from outrider.core import Mode, UserError
from outrider.serving.deployer import LocalDeployer
from outrider.serving.fleet import Fleet, Order, open_fleet
from outrider.serving.health import Health
from outrider.serving.kept import Card, Kept, MemoryKept, keep_control, kept_control
from outrider.serving.local import LocalRelease
from outrider.serving.messages import Control
from outrider.serving.split import Plan

ORDER = Order(fingerprint="fp2", settings={"engine": {"rule": "ratio"}})


def make(name: str, settings: Mapping[str, Any]) -> LocalRelease:
    if name == "broken":
        raise UserError("engine: no")
    return LocalRelease(name, ())


def opened(kept: Kept, owner: str = "me", fingerprint: str = "fp") -> Fleet:
    return open_fleet(
        "main",
        Card(fingerprint=fingerprint),
        owner=owner,
        deployer=LocalDeployer(make, [LocalRelease("main", ())]),
        kept=kept,
        most_calls=10,
        deadline_s=1.0,
    )


async def promote(fleet: Fleet) -> None:
    await fleet.deploy("next", ORDER)
    await fleet.put_plan(Plan(stable="main", candidate="next", weight=0.5, salt="s", revision=3))
    await fleet.put_plan(Plan(stable="next", salt="s", revision=4))


def test_a_gateway_that_starts_again_has_its_plan_its_releases_and_their_cards() -> None:
    kept = MemoryKept()
    first = opened(kept)
    assert first.desk.plan == Plan(stable="main")
    asyncio.run(promote(first))
    second = opened(kept)
    assert second.desk.plan == first.desk.plan
    assert set(second.desk.releases) == {"main", "next"}
    assert second.cards["next"] == Card(fingerprint="fp2", is_coupled=False)


def test_a_release_that_was_taken_away_does_not_come_back_with_the_gateway() -> None:
    kept = MemoryKept()

    async def story() -> None:
        fleet = opened(kept)
        await promote(fleet)
        await fleet.remove("main")

    asyncio.run(story())
    assert set(opened(kept).desk.releases) == {"next"}


def test_another_service_forgets_what_this_one_kept() -> None:
    kept = MemoryKept()
    asyncio.run(promote(opened(kept)))
    keep_control(kept, "main", Control(mode=Mode.PLAIN))
    other = opened(kept, owner="another", fingerprint="fp9")
    assert other.desk.plan == Plan(stable="main")
    assert other.cards == {"main": Card(fingerprint="fp9")}
    assert kept_control(kept, "main") == Control()


def test_how_a_release_decodes_is_kept() -> None:
    kept = MemoryKept()
    control = Control(mode=Mode.PLAIN, max_draft_length=2)
    keep_control(kept, "main", control)
    assert kept_control(kept, "main") == control
    assert kept_control(kept, "other") == Control()


def test_what_fails_to_start_can_be_started_again() -> None:
    async def story() -> None:
        fleet = opened(MemoryKept())
        await fleet.deploy("broken", ORDER)
        await fleet.deploy("broken", ORDER)
        told = (await fleet.conditions())["broken"]
        assert (told.health, told.message) == (Health.FAILED, "engine: no")
        assert "broken" not in fleet.running(await fleet.conditions())

    asyncio.run(story())


def test_a_plan_can_only_name_what_is_there() -> None:
    async def story() -> None:
        fleet = opened(MemoryKept())
        with pytest.raises(UserError, match="candidate: no release 'next' here; there is main"):
            await fleet.put_plan(Plan(stable="main", candidate="next", revision=1))
        assert fleet.desk.plan.revision == 0

    asyncio.run(story())
