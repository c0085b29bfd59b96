"""What follows from a search: the recommended release, registered, and named where it may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outrider.config.schema import CriteriaSettings
from outrider.core import Fault, UserError
from outrider.telemetry import meters
from outrider.tracking.registry import Alias, Registry, Version
from outrider.tracking.release import Release
from outrider.tracking.tracker import Run
from outrider.trial.book import metrics_of
from outrider.trial.contender import Contender
from outrider.trial.criteria import judge
from outrider.trial.group import ALL
from outrider.trial.judgement import Decision
from outrider.trial.record import Figures
from outrider.trial.sweep_folder import SweepFolder
from outrider.trial.sweep_record import Outcome

OVERRIDES = "overrides.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnd:
    """Ends a search. Nothing raises for a store that is away."""

    registry: Registry | None  # None: releases are not registered
    criteria: CriteriaSettings
    folder: SweepFolder
    in_flight: int
    tell: Callable[[str], None]

    def plain(self, contender: Contender) -> Outcome:
        """Nobody is faster: plain decoding is recommended, which is not registered."""
        self._write(contender.release)
        return Outcome(recommended=contender.name, fingerprint=contender.release.fingerprint)

    def faster(self, contender: Contender, found: Sequence[Figures], run: Run) -> Outcome:
        """`found`: the contender's, on all prompts."""
        release, judgement = contender.release, judge(found, self.criteria)
        self._write(release)
        run.log_final(metrics_of(found, contender.name, self.in_flight))
        run.register(release.record)
        version = self._registered(release, run)
        whole = next(one for one in found if one.group == ALL)
        return Outcome(
            recommended=contender.name,
            fingerprint=release.fingerprint,
            speedup=whole.ratios[meters.SPEEDUP_RATIO.name],
            decision=judgement.decision,
            reason=judgement.reason,
            version=None if version is None else version.number,
            is_challenger=judgement.decision is Decision.ADOPT and self._named(version),
        )

    def _write(self, release: Release) -> None:
        overrides = release.texts.get(OVERRIDES, "").splitlines()
        content = {"overrides": overrides, "config": dict(release.config)}
        self.folder.recommend(content)

    def _registered(self, release: Release, run: Run) -> Version | None:
        if self.registry is None:
            return None
        try:
            return self.registry.register(release.record, run.run_id)
        except Fault as fault:
            self.tell(f"the release is registered later: {fault}")
            return None

    def _named(self, version: Version | None) -> bool:
        if version is None or self.registry is None:
            return False
        try:
            self.registry.give(Alias.CHALLENGER, version.number)
        except (UserError, Fault) as error:
            self.tell(f"not named {Alias.CHALLENGER}: {error}")
            return False
        return True
