"""What a person can do on the page: by keyboard alone, with a key, and where the server refuses."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import Chromium
from http_site import Site
from play import Play
from playwright.sync_api import expect
from scene import CANDIDATE, MAIN
from stage import Played, stage

from outrider.config.schema import ConsoleSettings, GateSettings, PlanSettings
from outrider.console.assets import read_assets
from outrider.console.console import Beside, Console
from outrider.console.order import Order
from outrider.console.rollouts import StoredRollouts
from outrider.core import UserError
from outrider.rollout.command import Verb
from outrider.rollout.database import Database
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Store
from outrider.tracking.store_uri import sqlite_uri

pytestmark = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no Chromium here: apt-get install chromium"
)
GATEWAY = "http://gateway.test"


def test_by_keyboard_alone_a_rollout_is_aborted(browser: Chromium, tmp_path: Path) -> None:
    url = sqlite_uri(tmp_path / "rollouts.db")
    database = Database(url)
    store = Store(database)
    store.begin(_begun(), PlanSettings(), GateSettings())
    console = Console(
        ConsoleSettings(), Beside(rollouts=StoredRollouts(url, GATEWAY)), read_assets()
    )
    with Site(service_fields={"additions": (console,)}) as site, browser.window(site.url) as window:
        window.open()
        expect(window.page.get_by_role("button", name="Abort…")).to_be_visible()
        _tab_to(window.page, "Abort…")
        window.page.keyboard.press("Enter")
        dialog = window.page.get_by_role("dialog")
        expect(dialog).to_contain_text(f"{MAIN} has all traffic again")
        expect(dialog).to_contain_text("Nobody controls this rollout now")
        expect(dialog.get_by_role("button", name="Abort")).to_be_disabled()
        assert window.violations == ""
        for keys in ("support called", "Tab", "ada", "Tab", "Space", "Tab", "Enter"):
            if keys in ("Tab", "Space", "Enter"):
                window.page.keyboard.press(keys)
            else:
                window.page.keyboard.type(keys)
        expect(dialog).to_contain_text("abort is written down")
        window.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        asked = store.commands("one", waiting=True)
        assert [(each.verb, each.who, each.why) for each in asked] == [
            (Verb.ABORT, "ada", "support called")
        ]
        assert window.complaints == []
    database.close()


def test_what_the_server_refuses_is_said_in_its_words(browser: Chromium, play: Play) -> None:
    class Refusing(Played):
        async def order(self, order: Order) -> str:
            raise UserError(f"{order.verb}: not now, <b>it</b> is promoting")

    additions = (Refusing(play),)
    with Site(service_fields={"additions": additions}) as site, browser.window(site.url) as window:
        window.open()
        window.page.get_by_role("button", name="Pause…").click()
        dialog = window.page.get_by_role("dialog")
        dialog.get_by_role("button", name="Pause").click()
        expect(dialog.get_by_role("status")).to_have_text("pause: not now, <b>it</b> is promoting")
        rollout = play.now.rollout
        assert rollout is not None
        play.now = replace(play.now, rollout=replace(rollout, rollout_id="another"))
        expect(dialog).to_contain_text("This rollout is over meanwhile")
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)


def test_a_key_is_asked_for_kept_in_the_tab_and_never_in_an_address(
    browser: Chromium, play: Play
) -> None:
    with stage(play, key="right-key") as site, browser.window(site.url) as window:
        window.open()
        page = window.page
        key = page.get_by_label("Admin key")
        key.fill("wrong-key")
        key.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That key was refused. Try another one.")
        assert window.violations == ""
        key.fill("right-key")
        key.press("Enter")
        expect(window.panel("Now")).to_be_visible()
        page.reload()
        expect(window.panel("Now")).to_be_visible()
        kept = page.evaluate("JSON.stringify([{...localStorage}, document.cookie, location.href])")
        assert "right-key" not in kept
        assert not any("right-key" in address for address in window.addresses)
        page.get_by_role("button", name="Sign out").click()
        expect(key).to_be_visible()
        expect(window.panel("Now")).to_have_count(0)


def _begun() -> Status:
    now_s = time.time()
    return Status(
        rollout_id="one",
        service=GATEWAY,
        candidate=Candidate(name=CANDIDATE, fingerprint="b07c55e1" * 8),
        stable=MAIN,
        stable_fingerprint="3f9ad1c2" * 8,
        began_s=now_s,
        since_s=now_s,
    )


def _tab_to(page: Any, name: str) -> None:
    """Nothing but Tab, from the top of the page."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == name:
            return
    raise AssertionError(f"no way to {name} by Tab")
