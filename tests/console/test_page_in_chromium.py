"""The page in a real browser: what a person sees, and what he can do by keyboard alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import PHONE, WIDE, Chromium
from http_site import Site
from playwright.sync_api import expect
from scene import CANDIDATE, MAIN, scene
from stage import Played, empty, stage

from outrider.config.schema import ConsoleSettings, GateSettings, PlanSettings
from outrider.console.assets import read_assets
from outrider.console.console import Beside, Console
from outrider.console.order import Order
from outrider.console.rollouts import StoredRollouts
from outrider.console.snapshot import Snapshot
from outrider.core import UserError
from outrider.rollout.command import Verb
from outrider.rollout.database import Database
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Store
from outrider.tracking.store_uri import sqlite_uri

pytestmark = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no Chromium here: apt-get install chromium"
)
DASH = "\u2013"
GATEWAY = "http://gateway.test"


@dataclass
class Play:
    """A scene that a test changes."""

    now: Snapshot

    def __call__(self) -> Snapshot:
        return self.now


@pytest.fixture
def play() -> Play:
    return Play(scene(time.time()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """Of this module alone: no test may run a loop of its own in this thread meanwhile."""
    with chromium.opened() as one:
        yield one


def test_the_first_figures_are_there_within_a_second(browser: Chromium, play: Play) -> None:
    took: list[float] = []
    with stage(play) as site:
        for _ in range(4):  # a busy machine has some more tries
            with browser.window(site.url) as window:
                window.open()
                expect(window.panel("Now")).to_contain_text("Tokens per second")
                assert window.first_figures_s is not None
                took.append(window.first_figures_s)
            if took[-1] < 1.0:
                break
    if min(took) >= 1.0 and os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        pytest.skip(f"too much else runs here: {min(took):.1f} s")
    assert min(took) < 1.0


def test_all_that_happens_is_shown(browser: Chromium, play: Play) -> None:
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        page = window.page
        expect(page).to_have_title(f"● plain {DASH} {MAIN} {DASH} Outrider")
        expect(window.panel("Throughput").get_by_role("img")).to_have_count(1)
        expect(window.panel("Draft lengths").get_by_role("img")).to_have_count(1)
        expect(window.panel("Releases and arms")).to_contain_text("achieved 76.2 % of 903 requests")
        expect(window.panel("Rollout")).to_contain_text("canary, step 2 of 3")
        row = window.panel("Rollout").get_by_role("row", name="inter token s")
        expect(row).to_contain_text("inconclusive")
        expect(row).to_contain_text("0.93 to 1.21 \u00d7")
        expect(window.panel("Replicas").get_by_role("row")).to_have_count(4)
        job = window.panel("Bulk jobs").get_by_role("listitem").first
        expect(job).to_contain_text("22 min 35 s left")
        button = window.panel("Acceptance by position").get_by_role("button", name="Show as table")
        button.click()
        expect(window.panel("Acceptance by position").get_by_role("row")).to_have_count(5)
        assert window.complaints == []


def test_what_changes_is_shown_without_a_reload(browser: Chromium, play: Play) -> None:
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        expect(window.panel("Now")).to_contain_text("11")
        play.now = replace(
            play.now, service=replace(play.now.service, num_calls=4321), rollout=None
        )
        expect(window.panel("Now")).to_contain_text("4,321")
        expect(window.panel("Rollout")).to_contain_text("python jobs/rollout.py")


def test_a_server_that_goes_is_said_and_its_successor_is_followed(
    browser: Chromium, play: Play
) -> None:
    site = stage(play)
    with browser.window(site.url) as window:
        window.open()
        expect(window.page.get_by_role("banner")).to_contain_text("live")
        expect(window.panel("Draft lengths").get_by_role("radio")).to_have_count(2)
        site.close()
        banner = window.page.get_by_role("banner")
        expect(banner).to_contain_text("reconnecting")
        expect(banner).to_contain_text("last seen")
        expect(window.page).to_have_title(f"● no answer {DASH} {MAIN} {DASH} Outrider")
        with stage(empty(), port=site.port):
            expect(banner).to_contain_text("restarted: the charts began anew")
            expect(window.panel("Draft lengths")).to_contain_text("No round was decoded yet")


def test_where_nothing_is_to_be_seen_it_says_what_to_do(browser: Chromium) -> None:
    with stage(empty()) as site, browser.window(site.url) as window:
        window.open()
        expect(window.page.get_by_role("main")).to_contain_text("No replica answers")
        expect(window.panel("Replicas")).to_contain_text("curl http://127.0.0.1:8000/readyz")
        expect(window.panel("Rollout")).to_contain_text("python jobs/rollout.py")
        expect(window.panel("Bulk jobs")).to_contain_text("python jobs/bulk.py input=my.jsonl")
        expect(window.panel("Now").locator(".figure").first).to_have_text(DASH)
        assert window.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (WIDE, "dark"), (PHONE, "light")])
def test_it_can_be_read_by_everybody(
    browser: Chromium, play: Play, width: int, scheme: str
) -> None:
    calm = empty()()
    with stage(play) as site, browser.window(site.url, width=width, scheme=scheme) as window:
        window.open()
        for now, word in ((play.now, "canary, step 2"), (calm, "Begin a rollout")):
            play.now = now
            expect(window.panel("Rollout")).to_contain_text(word)
            assert window.overflow <= 0
            assert window.violations == ""
        assert window.complaints == []


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


def test_what_looks_like_markup_stays_text(browser: Chromium, play: Play) -> None:
    name = "<img src=x onerror=alert(1)>"
    told = play.now
    assert told.rollout is not None
    play.now = replace(
        told,
        service=replace(told.service, name=name, model=name),
        rollout=replace(told.rollout, candidate=name, reason=name, waits=name),
        jobs=tuple(replace(job, name=name) for job in told.jobs),
        points=tuple(replace(point, release=name) for point in told.points),
        notes=(name,),
    )
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        expect(window.panel("Rollout")).to_contain_text(name)
        expect(window.panel("Throughput")).to_contain_text(name)
        expect(window.page.locator("main img")).to_have_count(0)
        assert window.complaints == []


def test_while_nobody_looks_nothing_is_asked(browser: Chromium, play: Play) -> None:
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        expect(window.panel("Now")).to_contain_text("11")
        window.page.evaluate(_HIDE, True)
        num = len(window.addresses)
        window.page.wait_for_timeout(1500)
        assert len(window.addresses) <= num + 1  # one was under way
        play.now = replace(play.now, service=replace(play.now.service, num_calls=77))
        window.page.evaluate(_HIDE, False)
        expect(window.panel("Now")).to_contain_text("77")


def test_what_is_not_known_is_no_number(browser: Chromium, play: Play) -> None:
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        told: dict[str, Any] = window.page.evaluate(_FIGURES)
    assert told == {
        "nothing": None,
        "dash": DASH,
        "gap": [2.0, None, 4.0],
        "positions": [{"position": 1, "evaluated": 4, "accepted": 3, "share": 0.75}],
        "length": 3.0,
        "anew": ["b"],
        "kept": [30.0],
    }


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


_HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
_FIGURES = """async () => {
  const figures = await import("/console/figures.js");
  const format = await import("/console/format.js");
  const history = await import("/console/history.js");
  const point = (at_s, emitted, more = {}) => ({
    release: "a", at_s, span_s: 2, emitted, drafted: 0, evaluated: 0, accepted: 0, num_rounds: 1,
    rounds_s: 1, plain_rounds_s: 1, rounds_by_draft_length: [], position_evaluated: [],
    position_accepted: [], ...more,
  });
  const asked = { width_s: 2, period_s: 2 };
  const line = figures.line([point(10, 2), point(18, 4)], figures.busyRate, asked);
  const sums = figures.total([
    point(1, 1, { rounds_by_draft_length: [9, 0, 0, 2], position_evaluated: [4, 0] }),
    point(2, 1, { position_accepted: [3] }),
  ]);
  const told = (began_s, points, at_s) => ({ service: { began_s }, points, at_s, keep_s: 20 });
  const first = history.merged(history.NOTHING, told(1, [point(10, 1)], 11));
  const later = history.merged(first, told(1, [point(10, 9), point(30, 1)], 31));
  const other = history.merged(first, told(2, [point(12, 1, { release: "b" })], 13));
  return {
    nothing: figures.ratio(0, 0),
    dash: format.share(figures.acceptance(figures.total([]))),
    gap: line.map((one) => one.value),
    positions: figures.positions(sums),
    length: figures.meanDraftLength(sums),
    anew: [...other.points.keys()],
    kept: later.points.get("a").map((one) => one.at_s),
  };
}"""
