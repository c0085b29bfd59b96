"""Measures a rung: its new prompts by every candidate, beside what earlier rungs saw of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider.core import Clock
from outrider.telemetry import meters
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.figures import figures
from outrider.trial.group import ALL
from outrider.trial.halving import Rung, Score
from outrider.trial.measure import Course
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch
from outrider.trial.record import Figures
from outrider.trial.sums import Terms
from outrider.trial.sweep_folder import SweepFolder
from outrider.trial.sweep_plan import groups, portions
from outrider.trial.sweep_seats import SweepSeats

Found = dict[str, tuple[Figures, ...]]
"""Candidate -> its figures against plain decoding, over all prompts that it has had."""


@dataclass(kw_only=True)
class Gauge:
    """Rungs come in order, from the first on; a group that is in the folder is only read."""

    plain: Contender
    candidates: Sequence[Contender]
    cases: Sequence[Case]  # in the order in which rungs take them
    warmup: Sequence[Case]  # others
    in_flight: int
    num_passes: int
    near_tie: float  # logits
    terms: Terms
    folder: SweepFolder
    seats: SweepSeats
    clock: Clock
    tell: Callable[[str], None]
    _seen: dict[str, Measured] = field(default_factory=dict)  # with plain decoding's of its groups
    _num_prompts: int = 0
    _num_batches: int = 0

    def measure(self, rung: Rung) -> Found:
        new = self.cases[self._num_prompts : rung.num_prompts]
        plan = portions(new, self.in_flight, self.num_passes, self._num_batches)
        for number, names in enumerate(groups(rung.candidates)):
            measured = self._group(rung, number, names, plan)
            for name in names:
                self._seen[name] = self._seen.get(name, Measured()) + self._pair(measured, name)
        self._num_prompts = rung.num_prompts
        self._num_batches += len(plan)
        return {name: self._figures(name) for name in rung.candidates}

    def _group(
        self, rung: Rung, number: int, names: Sequence[str], plan: Sequence[Batch]
    ) -> Measured:
        found = self.folder.measured(rung.number, number, {self.plain.name, *names})
        if found is None:
            found = self._decode(rung, names, plan)
            self.folder.keep(rung.number, number, found)
        return found

    def _decode(self, rung: Rung, names: Sequence[str], plan: Sequence[Batch]) -> Measured:
        def tell(line: str) -> None:
            self.tell(f"rung {rung.number + 1}: {line}")

        chosen = [one for one in self.candidates if one.name in names]
        return Course(
            seats=self.seats.taken([self.plain, *chosen]),
            warmup=self.warmup,
            near_tie=self.near_tie,
            clock=self.clock,
            tell=tell,
        ).run([plan])

    def _pair(self, measured: Measured, name: str) -> Measured:
        """Of the candidate, and of the plain decoding that took turns with it."""
        names = (self.plain.name, name)
        return Measured(
            observations=tuple(one for one in measured.observations if one.contender in names),
            turns=tuple(one for one in measured.turns if one.contender in names),
        )

    def _figures(self, name: str) -> tuple[Figures, ...]:
        baselines = {self.plain.name: "", name: self.plain.name}
        found = figures(self._seen[name], baselines, self.terms)
        return tuple(one for one in found if one.contender == name)


def score(found: Sequence[Figures]) -> Score:
    """`found`: of one candidate."""
    whole = next(one for one in found if one.group == ALL)
    return Score(
        speedup=whole.ratios.get(meters.SPEEDUP_RATIO.name),
        tokens_per_s=whole.metrics.get(meters.TOKENS_PER_S.name, 0.0),
        failure_ratio=whole.metrics[meters.FAILURE_RATIO.name],
        num_mismatches=int(whole.metrics.get(meters.NUM_MISMATCHES.name, 0)),
    )
