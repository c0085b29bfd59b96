"""One recorded trial, read back whole: what the report is written from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from outrider.compare.candidate import Candidate
from outrider.core import Fault, UserError
from outrider.tracking.history import History, RecordedRun
from outrider.trial.observation import Observation, Turn
from outrider.trial.record import FILE, TrialRecord
from outrider.trial.tables import OBSERVATIONS, TURNS, read_observations, read_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial's run, its record and its two tables."""

    run: RecordedRun
    record: TrialRecord
    observations: tuple[Observation, ...]
    turns: tuple[Turn, ...]

    def only(self, fingerprints: Collection[str]) -> Trial:
        """Of these releases, and the plain ones that they are compared with."""
        chosen = [one for one in self.record.entrants if one.fingerprint in fingerprints]
        names = {name for one in chosen for name in (one.name, one.baseline)}
        entrants = tuple(one for one in self.record.entrants if one.name in names)
        figures = tuple(one for one in self.record.figures if one.contender in names)
        return replace(
            self,
            record=replace(self.record, entrants=entrants, figures=figures),
            observations=tuple(one for one in self.observations if one.contender in names),
            turns=tuple(one for one in self.turns if one.contender in names),
        )


def read_trial(history: History, run: RecordedRun) -> Trial:
    """Raises Fault for a run whose artifacts are not there or damaged."""
    with TemporaryDirectory(prefix="outrider-trial-") as name:
        folder = Path(name)
        record = history.fetch(run.run_id, FILE, folder)
        try:
            text = record.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise Fault(f"{FILE} of run {run.run_id} can't be read: {error}") from error
        return Trial(
            run=run,
            record=TrialRecord.from_json(text),
            observations=read_observations(history.fetch(run.run_id, OBSERVATIONS, folder)),
            turns=read_turns(history.fetch(run.run_id, TURNS, folder)),
        )


def newest_trial(
    candidates: Sequence[Candidate],
    identities: Collection[str],
    is_met: Callable[[Candidate], bool],
) -> str:
    """The id of the newest run whose contenders include all `identities` and one that `is_met`.

    `candidates`: newest first. UserError where there is none.
    """
    trials: dict[str, list[Candidate]] = {}
    for one in candidates:
        if one.run.parent_id and one.is_finished:
            trials.setdefault(one.run.parent_id, []).append(one)
    for run_id, contenders in trials.items():
        has_all = set(identities) <= {one.identity for one in contenders}
        if has_all and any(is_met(one) for one in contenders):
            return run_id
    raise UserError(
        "compare.releases: no finished trial measured them together; "
        "python jobs/bench.py with both in releases=[...] does so"
        if len(identities) > 1
        else "compare.where: no finished trial meets it; python jobs/compare.py lists what there is"
    )
