"""The runs of one trial: a parent, and a child for each contender and number in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from outrider.config.schema import CriteriaSettings
from outrider.config.typed import plain
from outrider.telemetry import meters
from outrider.tracking.lifecycle import closing
from outrider.tracking.tracker import Run, Tracker
from outrider.trial.contender import Contender
from outrider.trial.criteria import digest
from outrider.trial.group import ALL
from outrider.trial.observation import Measured
from outrider.trial.record import CRITERIA_FILE, FILE, Figures, TrialRecord
from outrider.trial.tables import OBSERVATIONS, TURNS, write_observations, write_turns

PARENT = "bench"  # kinds of run
CHILD = "contender"
DIFF = "code.diff"  # one for all: the parent has it
COUNTS_BY_GROUP = frozenset({meters.NUM_REQUESTS.name, meters.NUM_FAILED.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What the runs of a trial are called and found by."""

    name: str
    params: Mapping[str, object]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Book:
    """Open runs; they end with the block that opened them, the children first."""

    parent: Run
    children: Mapping[tuple[str, int], Run]  # by contender and number in flight

    def write_down(self, criteria: CriteriaSettings) -> None:
        """Returns when the criteria are in the store, or on disk while the store is away."""
        text = yaml.safe_dump(plain(criteria), sort_keys=False, allow_unicode=True)
        self.parent.log_text(text, CRITERIA_FILE)
        self.parent.set_tags({"criteria.sha256": digest(criteria)})
        self.parent.flush()

    def conclude(self, record: TrialRecord, measured: Measured, folder: Path) -> None:
        """Figures into the children, tables and record into the parent. The files stay."""
        folder.mkdir(parents=True, exist_ok=True)
        write_observations(folder / OBSERVATIONS, measured.observations)
        write_turns(folder / TURNS, measured.turns)
        (folder / FILE).write_text(record.to_json(), encoding="utf-8")
        for name in (OBSERVATIONS, TURNS, FILE):
            self.parent.log_artifact(folder / name)
        for (name, in_flight), run in self.children.items():
            run.log_final(metrics_of(record.figures, name, in_flight))
        for entrant in record.entrants:
            if entrant.judgement is not None:
                self.tag(entrant.name, {"decision": entrant.judgement.decision.value})
                self.tag(entrant.name, {"decision.reason": entrant.judgement.reason})

    def tag(self, contender: str, tags: Mapping[str, str]) -> None:
        """All runs of a contender."""
        for (name, _), run in self.children.items():
            if name == contender:
                run.set_tags(tags)

    def log_use(self, contender: str, use: int) -> None:
        """Which use of the confirmation prompts this is."""
        for (name, _), run in self.children.items():
            if name == contender:
                run.log_final({meters.CONFIRMATION_USE.name: float(use)})
        self.tag(contender, {"confirmation.use": str(use)})


@contextmanager
def open_book(
    tracker: Tracker, heading: Heading, contenders: Sequence[Contender], in_flight: Sequence[int]
) -> Iterator[Book]:
    """Start the runs; whatever ends the block closes each with the status that it deserves."""
    with ExitStack() as runs:
        started = tracker.start_run(heading.name, PARENT, heading.params, heading.tags)
        parent = runs.enter_context(closing(started))
        children: dict[tuple[str, int], Run] = {}
        for contender in contenders:
            for number in in_flight:
                child = _start(tracker, heading, contender, number, parent)
                children[contender.name, number] = runs.enter_context(closing(child))
                _describe(child, contender)
        yield Book(parent, children)


def _start(
    tracker: Tracker, heading: Heading, contender: Contender, in_flight: int, parent: Run
) -> Run:
    release = contender.release
    tags = {
        **release.run_tags,
        **heading.tags,
        "release.fingerprint": release.fingerprint,
        "baseline": contender.baseline,
    }
    params = {**release.settings, "in_flight": in_flight}
    return tracker.start_run(contender.name, CHILD, params, tags, parent=parent)


def _describe(run: Run, contender: Contender) -> None:
    """A baseline is no release that anybody would serve: it is not registered."""
    for name, text in contender.release.texts.items():
        if name != DIFF:
            run.log_text(text, name)
    if not contender.is_baseline:
        run.register(contender.release.record)


def metrics_of(figures: Sequence[Figures], contender: str, in_flight: int) -> dict[str, float]:
    """By the catalogue's names, `/group` behind them; of groups without the long counts."""
    return {
        f"{name}/{one.group}" if one.group else name: value
        for one in figures
        if (one.contender, one.in_flight) == (contender, in_flight)
        for name, value in one.metrics.items()
        if one.group == ALL or _is_told_by_group(name)
    }


def _is_told_by_group(name: str) -> bool:
    return name in COUNTS_BY_GROUP or not ("/" in name or name.startswith("num_"))
