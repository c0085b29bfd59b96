"""The page in a real browser: what a person sees."""

from __future__ import annotations

import os
from dataclasses import replace

import chromium
import pytest
from chromium import PHONE, WIDE, Chromium
from play import Play
from playwright.sync_api import expect
from scene import CANDIDATE, MAIN
from stage import empty, stage

from outrider.bulk.glance import JobState
from outrider.rollout.phase import Phase

pytestmark = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no Chromium here: apt-get install chromium"
)
DASH = "\u2013"


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
    rollout = play.now.rollout
    assert rollout is not None
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        expect(window.panel("Now")).to_contain_text("11")
        play.now = replace(
            play.now, service=replace(play.now.service, num_calls=4321), rollout=None
        )
        expect(window.panel("Now")).to_contain_text("4,321")
        expect(window.panel("Rollout")).to_contain_text("python jobs/rollout.py")
        over = replace(rollout, phase=Phase.ROLLED_BACK, is_over=True, verbs=())
        play.now = replace(play.now, rollout=replace(over, sentence=over.phase.sentence))
        news = window.page.get_by_role("region", name="Needs attention")
        expect(news).to_contain_text(f"The rollout of {CANDIDATE} ended: It was taken back")
        expect(news).not_to_contain_text("translations")  # it stopped hours ago
        failed = replace(play.now.jobs[1], state=JobState.FAILED, at_s=play.now.at_s - 60.0)
        play.now = replace(play.now, jobs=(failed,))
        expect(news).to_contain_text("Bulk job translations has failed")


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
        begin = "python jobs/rollout.py url=http://127.0.0.1:8000 'release="
        expect(window.panel("Rollout")).to_contain_text(begin)
        expect(window.panel("Bulk jobs")).to_contain_text("python jobs/bulk.py input=my.jsonl")
        expect(window.panel("Now").locator(".figure").first).to_have_text(DASH)
        assert window.complaints == []


@pytest.mark.parametrize(
    ("width", "scheme", "word"),
    [
        (1400, "light", "canary, step 2"),
        (WIDE, "dark", "canary, step 2"),
        (PHONE, "light", "canary, step 2"),
        (PHONE, "dark", "Begin a rollout"),
    ],
)
def test_it_can_be_read_by_everybody(
    browser: Chromium, play: Play, width: int, scheme: str, word: str
) -> None:
    shown = play if word.startswith("canary") else empty()
    with stage(shown) as site, browser.window(site.url, width=width, scheme=scheme) as window:
        window.open()
        expect(window.panel("Rollout")).to_contain_text(word)
        assert window.overflow <= 0
        assert window.violations == ""
        assert window.complaints == []


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


_HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
