"""A search from end to end: rungs measured, recorded and halved until one release is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from typing import Any

from outrider.config.schema import CriteriaSettings
from outrider.tracking.lifecycle import terminate_as_exception
from outrider.tracking.tracker import Run
from outrider.trial.book import Book
from outrider.trial.contender import Contender
from outrider.trial.halving import Fate, Halving, Rung, winner
from outrider.trial.sweep_book import SweepBook
from outrider.trial.sweep_end import SweepEnd
from outrider.trial.sweep_folder import SweepFolder
from outrider.trial.sweep_gauge import Found, Gauge, score
from outrider.trial.sweep_record import Outcome, Progress, RungRecord, Standing, SweepRecord


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A search over `candidates`, gone on with where it stopped."""

    identity: Mapping[str, Any]  # everything that makes it this search
    plain: Contender
    candidates: Sequence[Contender]  # the simplest first
    halving: Halving
    criteria: CriteriaSettings
    gauge: Gauge
    folder: SweepFolder
    session: Callable[[], AbstractContextManager[None]]  # engines live in it
    book: SweepBook
    end: SweepEnd
    show: Callable[[RungRecord], None]
    tell: Callable[[str], None]

    def run(self) -> SweepRecord:
        """Raises UserError where the folder holds another search."""
        with self.folder.locked():
            progress = self.folder.progress(self.identity)
            if progress.outcome is None:
                progress = self._go_on(progress)
            else:
                self.tell(f"the search in {self.folder.root} is over: nothing is measured")
                for rung in progress.rungs:
                    self.show(rung)
        return SweepRecord(identity=self.identity, progress=progress)

    def _go_on(self, progress: Progress) -> Progress:
        with (
            self.session(),
            terminate_as_exception(),
            self.book.opened(progress.run_id) as run,
            closing(self.gauge.seats),
        ):
            progress = replace(progress, run_id=run.run_id)
            self.folder.save(self.identity, progress)
            Book(run, {}).write_down(self.criteria)  # before the first request
            progress = self._search(run, progress)
            self.folder.save(self.identity, progress)
            for path in (self.folder.record, self.folder.recommended):
                run.log_artifact(path)
        return progress

    def _search(self, run: Run, progress: Progress) -> Progress:
        rung: Rung | None = self.halving.first([one.name for one in self.candidates])
        while rung is not None:
            found = self.gauge.measure(rung)
            scores = {name: score(found[name]) for name in rung.candidates}
            fates = self.halving.fates(rung, scores)
            record = RungRecord(
                number=rung.number,
                num_prompts=rung.num_prompts,
                standings=tuple(
                    Standing(candidate=name, score=scores[name], fate=fates[name])
                    for name in rung.candidates
                ),
            )
            progress = self._noted(run, progress, record, found)
            self.show(record)
            rung = self.halving.after(rung, fates)
        return replace(progress, outcome=self._outcome(run, fates, found))

    def _noted(self, run: Run, progress: Progress, record: RungRecord, found: Found) -> Progress:
        """Once: a rung that was recorded before the search stopped is not recorded again."""
        if record.number < len(progress.rungs):
            return progress
        self.book.note(run, record, {one.name: one for one in self.candidates}, found)
        progress = replace(progress, rungs=(*progress.rungs, record))
        self.folder.save(self.identity, progress)
        return progress

    def _outcome(self, run: Run, fates: Mapping[str, Fate], found: Found) -> Outcome:
        best = winner(fates)
        if best is None:
            run.set_tags({"recommended": self.plain.name})
            return self.end.plain(self.plain)
        run.set_tags({"recommended": best})
        return self.end.faster(self._named(best), found[best], run)

    def _named(self, name: str) -> Contender:
        return next(one for one in self.candidates if one.name == name)
