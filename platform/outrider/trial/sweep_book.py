"""The runs of a search: a parent that goes on with it, and a child for each candidate and rung."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from outrider.tracking.lifecycle import closing
from outrider.tracking.tracker import Run, Tracker
from outrider.trial.book import CHILD, Heading, metrics_of
from outrider.trial.contender import Contender
from outrider.trial.sweep_gauge import Found
from outrider.trial.sweep_record import RungRecord

PARENT = "sweep"  # kind of run
CONFIG = "config.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBook:
    """Where a search is recorded."""

    tracker: Tracker
    heading: Heading
    in_flight: int

    @contextmanager
    def opened(self, run_id: str) -> Iterator[Run]:
        """The search's run, which has the id where it began before; closed whatever ends it."""
        told = (self.heading.name, PARENT, self.heading.params, self.heading.tags)
        run: Run = (
            self.tracker.resume_run(run_id, *told) if run_id else self.tracker.start_run(*told)
        )
        with closing(run):
            yield run

    def note(
        self,
        parent: Run,
        rung: RungRecord,
        contenders: Mapping[str, Contender],
        found: Found,
    ) -> None:
        """Record a rung that is over. Returns when it is in the store, or on disk."""
        for standing in rung.standings:
            contender = contenders[standing.candidate]
            tags = {
                **contender.release.run_tags,
                **self.heading.tags,
                "release.fingerprint": contender.release.fingerprint,
                "baseline": contender.baseline,
                "rung": str(rung.number + 1),
                "fate": standing.fate.value,
            }
            params = {**contender.release.settings, "in_flight": self.in_flight}
            child = self.tracker.start_run(contender.name, CHILD, params, tags, parent=parent)
            with closing(child):
                child.log_text(contender.release.texts.get(CONFIG, ""), CONFIG)
                child.log_final(metrics_of(found[contender.name], contender.name, self.in_flight))
        parent.flush()
