"""What jobs/compare.py does: board, diff or report, after the aliases that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from outrider.compare.board import leaderboard
from outrider.compare.board_screen import show_board
from outrider.compare.candidate import CONTENDER, SWEEP, Candidate, candidates
from outrider.compare.choice import Choice, choose
from outrider.compare.condition import Condition
from outrider.compare.diff import diff, settings_from_params
from outrider.compare.diff_screen import show_diff
from outrider.compare.trial_files import Trial, newest_trial, read_trial
from outrider.config.schema import CompareAction, CompareSettings
from outrider.core import UserError
from outrider.tracking.history import History
from outrider.tracking.registry import Alias, Registry, Version
from outrider.tracking.release_record import SECTIONS

MEASURE = "python jobs/bench.py 'releases=[\"draft=ngram\"]' measures a release"


@dataclass(kw_only=True)
class Comparison:
    """One call of the command."""

    settings: CompareSettings
    history: History
    registry: Registry
    screen: Console

    def run(self) -> int:
        """Raises UserError, one line that says what to do, for what is not there."""
        self._need_runs()
        is_named = self._give_aliases()
        if not is_named or self.settings.action is not CompareAction.BOARD:
            ACTIONS[self.settings.action](self)
        return 0

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Newest first."""
        recorded = [CONTENDER if kind == SWEEP else kind for kind in self._kinds]
        try:
            runs = self.history.runs(recorded)  # first: the registry would make the store
        except UserError as error:  # there is none
            raise UserError(f"{error}; {MEASURE}") from error
        found = candidates(runs, self.versions)
        return [one for one in found if one.kind in self._kinds]

    @property
    def _kinds(self) -> Sequence[str]:
        is_report = self.settings.action is CompareAction.REPORT  # of a trial's contenders
        return (CONTENDER,) if is_report else self.settings.kinds

    @cached_property
    def versions(self) -> Sequence[Version]:
        return self.registry.versions()

    def board(self) -> None:
        settings = self.settings
        found = leaderboard(
            self.candidates, where=settings.where, sort=settings.sort, top=settings.top
        )
        show_board(found, settings.sort, self.screen)

    def diff(self) -> None:
        old, new = (self._choice(word) for word in self.settings.releases)
        show_diff(diff(old, new, *self._settings_of(old, new)), self.screen)

    def report(self) -> None:
        choices = [self._choice(word) for word in self.settings.releases]
        identities = {choice.identity for choice in choices}
        conditions = self._conditions()
        run_id = newest_trial(
            self.candidates,
            identities,
            lambda one: all(condition.holds(one.facts) for condition in conditions),
        )
        trial = read_trial(self.history, self.history.run(run_id))
        trial = trial.only(identities) if identities else trial
        from outrider.compare.report import write_report  # Matplotlib: only where it is needed

        path = Path(self.settings.out)
        write_report(trial, self._settings_in(trial), path)
        self._say(f"report of {trial.run.name}: {path.absolute()}")

    def _need_runs(self) -> None:
        if not self.candidates and not self._asks_for_aliases:
            kinds = ", ".join(self._kinds)
            raise UserError(f"no run of kind {kinds} is recorded yet: {MEASURE}")

    @property
    def _asks_for_aliases(self) -> bool:
        return bool(self.settings.champion or self.settings.challenger)

    def _give_aliases(self) -> bool:
        for alias in (Alias.CHAMPION, Alias.CHALLENGER):
            word = getattr(self.settings, alias.value)
            if word:
                self._give(alias, word)
        return self._asks_for_aliases

    def _give(self, alias: Alias, word: str) -> None:
        """Say what every version that changed is called now."""
        version = self._choice(word, f"compare.{alias.value}").version
        if version is None:
            raise UserError(f"compare.{alias.value}: {word!r} was never registered; {MEASURE}")
        before = {one.number: one.aliases for one in self.versions}
        self.registry.give(alias, version.number)
        del self.versions, self.candidates  # read again: they carry aliases
        changed = [one for one in self.versions if set(one.aliases) != set(before[one.number])]
        for one in changed:
            self._say(f"{one.uri}: {_names(before[one.number])} -> {_names(one.aliases)}")
        if not changed:
            self._say(f"{version.uri}: {alias.value} already")

    def _choice(self, word: str, key: str = "compare.releases") -> Choice:
        return choose(word, self.candidates, self.versions, key)

    def _conditions(self) -> list[Condition]:
        names = list(dict.fromkeys(name for one in self.candidates for name in one.facts))
        return [Condition.parse(text).over(names) for text in self.settings.where]

    def _settings_of(self, old: Choice, new: Choice) -> tuple[object, object]:
        """By their records; by their runs' params where one was never registered."""
        if old.version is not None and new.version is not None:
            records = (self.registry.record(version) for version in (old.version, new.version))
            before, after = (record.settings for record in records)
            return before, after
        before, after = (settings_from_params(one.params, SECTIONS) for one in (old, new))
        return before, after

    def _settings_in(self, trial: Trial) -> dict[str, dict[str, str]]:
        """By contender, out of the params of its first run in the trial."""
        params = {
            one.identity: one.run.params
            for one in reversed(self.candidates)
            if one.run.parent_id == trial.run.run_id
        }
        return {
            entrant.name: settings_from_params(params.get(entrant.fingerprint, {}), SECTIONS)
            for entrant in trial.record.entrants
        }

    def _say(self, line: str) -> None:
        self.screen.print(line, highlight=False, markup=False, soft_wrap=True)


def _names(aliases: Sequence[str]) -> str:
    return ", ".join(sorted(aliases)) or "no alias"


ACTIONS: dict[CompareAction, Callable[[Comparison], None]] = {
    CompareAction.BOARD: Comparison.board,
    CompareAction.DIFF: Comparison.diff,
    CompareAction.REPORT: Comparison.report,
}
