"""A trial from end to end: criteria written down, prompts decoded in turn, the decision told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.config.schema import CriteriaSettings, Part, TrialSettings
from outrider.config.typed import plain
from outrider.core import Clock, Fault, UserError
from outrider.tracking.lifecycle import terminate_as_exception
from outrider.tracking.registry import Registry, Version
from outrider.tracking.tracker import Tracker
from outrider.trial.book import DIFF, Book, Heading, open_book
from outrider.trial.case import Case
from outrider.trial.confirmation import Confirmation
from outrider.trial.contender import Contender
from outrider.trial.criteria import digest, judge, not_the_first
from outrider.trial.evaluation import Evaluation
from outrider.trial.figures import figures
from outrider.trial.judgement import Judgement
from outrider.trial.measure import Course
from outrider.trial.observation import Measured
from outrider.trial.plan import batches
from outrider.trial.record import Entrant, Figures, TrialRecord
from outrider.trial.seat import seated
from outrider.trial.side import OpenSide
from outrider.trial.split import cases_of
from outrider.trial.sums import Terms


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Contenders, each with its baseline among them, and where it is all recorded."""

    settings: TrialSettings
    criteria: CriteriaSettings
    evaluation: Evaluation
    warmup: Sequence[Case]  # not of the evaluation set
    contenders: Sequence[Contender]
    open_side: OpenSide
    session: Callable[[], AbstractContextManager[None]]  # sides live in it
    tracker: Tracker
    registry: Registry | None  # None: releases are not registered
    folder: Path  # for what is recorded as files
    cores: int  # given to each contender
    conditions: Mapping[str, Any]
    clock: Clock
    tell: Callable[[str], None]

    def run(self) -> TrialRecord:
        """Raises UserError before anything is decoded where the trial can't be meant."""
        cases = self._cases()
        with self.session(), terminate_as_exception(), self._book(cases) as book:
            book.write_down(self.criteria)
            self._describe(book)
            versions = self._register(book)
            uses = self._spend(book, versions)
            measured = self._measure(cases)
            record = self._record(cases, measured, versions, uses)
            book.conclude(record, measured, self.folder)
        return record

    def _book(self, cases: Sequence[Case]) -> AbstractContextManager[Book]:
        return open_book(self.tracker, self._heading(cases), self.contenders, self._loads)

    @property
    def _loads(self) -> Sequence[int]:
        return self.settings.in_flight

    @property
    def _is_confirmation(self) -> bool:
        return self.settings.part is Part.CONFIRMATION

    def _cases(self) -> tuple[Case, ...]:
        if self._is_confirmation and self.registry is None:
            raise UserError(
                "trial.part=confirmation: with tracking off nobody would know that these prompts"
                " were used; leave tracking on, or give part=tuning"
            )
        part, share = self.settings.part, self.settings.confirmation_share
        self._check_names()
        cases = cases_of(part, self.evaluation.cases, share)
        if not cases:
            raise UserError(
                f"trial.confirmation_share={share:g} leaves no prompts for {part.value}"
            )
        return cases

    def _check_names(self) -> None:
        """One release under two names would spend its confirmation prompts twice."""
        names: dict[str, str] = {}
        for one in self.contenders:
            if one.is_baseline:
                continue
            other = names.setdefault(one.release.fingerprint, one.name)
            if other != one.name:
                raise UserError(f"trial.releases: {other!r} and {one.name!r} are the same release")

    def _heading(self, cases: Sequence[Case]) -> Heading:
        tried = [one.name for one in self.contenders if not one.is_baseline]
        return Heading(
            name=f"{self.settings.part.value}: {', '.join(tried)}",
            params={
                "trial": plain(self.settings),
                "criteria": plain(self.criteria),
                "evaluation": {"sha256": self.evaluation.sha256, "num_cases": len(cases)},
                "cores": self.cores,
            },
            tags={
                "part": self.settings.part.value,
                "evaluation.sha256": self.evaluation.sha256,
                "criteria.sha256": digest(self.criteria),
            },
        )

    def _describe(self, book: Book) -> None:
        """The code is one for all contenders."""
        release = self.contenders[0].release
        book.parent.set_tags(release.tags)
        if DIFF in release.texts:
            book.parent.log_text(release.texts[DIFF], DIFF)

    def _register(self, book: Book) -> dict[str, Version]:
        """A store that is away stops no tuning: the runs register their releases later."""
        versions: dict[str, Version] = {}
        if self.registry is None:
            return versions
        for one in self.contenders:
            if one.is_baseline:
                continue
            try:
                found = self.registry.register(one.release.record, book.parent.run_id)
            except Fault as fault:
                if self._is_confirmation:
                    raise
                self.tell(f"{one.name} is registered later: {fault}")
                continue
            versions[one.name] = found
            book.tag(one.name, {"release.version": str(found.number)})
        return versions

    def _spend(self, book: Book, versions: Mapping[str, Version]) -> dict[str, int]:
        """Contender -> which use of the confirmation prompts this is, marked before the first."""
        uses: dict[str, int] = {}
        if not self._is_confirmation or self.registry is None:
            return uses
        confirmation = Confirmation(
            registry=self.registry, evaluation_sha256=self.evaluation.sha256
        )
        for name, version in versions.items():
            uses[name] = use = confirmation.spend(version, book.parent.run_id)
            book.log_use(name, use)
            if use > 1:
                self.tell(f"{name}: use {use} of these confirmation prompts; it can't be adopted")
        return uses

    def _measure(self, cases: Sequence[Case]) -> Measured:
        with seated(self.contenders, self.open_side, self.clock, self.tell) as seats:
            return Course(
                seats=seats,
                warmup=self.warmup,
                near_tie=self.settings.near_tie,
                clock=self.clock,
                tell=self.tell,
            ).run([batches(cases, load, self.settings.num_passes) for load in self._loads])

    def _record(
        self,
        cases: Sequence[Case],
        measured: Measured,
        versions: Mapping[str, Version],
        uses: Mapping[str, int],
    ) -> TrialRecord:
        found = figures(
            measured,
            {one.name: one.baseline for one in self.contenders},
            Terms(
                confidence=self.criteria.confidence,
                price_per_hour=self.settings.price_per_hour,
                cores=self.cores,
            ),
        )
        return TrialRecord(
            part=self.settings.part.value,
            evaluation=self.evaluation.name,
            evaluation_sha256=self.evaluation.sha256,
            num_cases=len(cases),
            criteria=plain(self.criteria),
            criteria_sha256=digest(self.criteria),
            conditions=self.conditions,
            entrants=tuple(self._entrant(one, found, versions, uses) for one in self.contenders),
            figures=found,
        )

    def _entrant(
        self,
        contender: Contender,
        found: Sequence[Figures],
        versions: Mapping[str, Version],
        uses: Mapping[str, int],
    ) -> Entrant:
        name = contender.name
        return Entrant(
            name=name,
            fingerprint=contender.release.fingerprint,
            baseline=contender.baseline,
            version=versions[name].number if name in versions else None,
            judgement=None if contender.is_baseline else self._judgement(name, found, uses),
        )

    def _judgement(self, name: str, found: Sequence[Figures], uses: Mapping[str, int]) -> Judgement:
        own = [one for one in found if one.contender == name]
        return not_the_first(judge(own, self.criteria), uses.get(name, 0))
