"""The stages of many simulated rollouts at once, judged at every look by the gates' own bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.draws import draw_failures, draw_streams
from outrider.rollout.effect import Effect, Traffic
from outrider.rollout.figures import LINEAR
from outrider.rollout.gates import (
    ERRORS,
    Flagged,
    Flags,
    Gate,
    Levels,
    bounds_of,
    error_bounds,
    levels,
    num_stages,
    ratios_on,
    shadow_levels,
)
from outrider.rollout.sequential import START, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The shadow, or a step of the canary: how many requests come from one look to the next."""

    candidate: int
    stable: int
    is_shadow: bool = False

    @property
    def both(self) -> int:
        return self.stable if self.is_shadow else self.candidate + self.stable


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What is simulated."""

    gates: GateSettings
    plan: PlanSettings
    effect: Effect
    traffic: Traffic
    num_rollouts: int
    num_looks: int  # of a whole rollout, spread evenly over the stages and their `max_s`

    @property
    def looks(self) -> int:
        """Of a stage."""
        return max(self.num_looks // num_stages(self.plan), 1)

    @property
    def shape(self) -> tuple[int, int]:
        return self.num_rollouts, self.looks

    @property
    def stages(self) -> list[Stage]:
        batch = self.traffic.per_s * self.plan.max_s / self.looks
        found = [
            Stage(candidate=_whole(batch * weight), stable=_whole(batch * (1.0 - weight)))
            for weight in self.plan.weights
        ]
        if self.plan.shadow_share <= 0:
            return found
        mirrored = _whole(batch * self.plan.shadow_share)
        return [Stage(candidate=mirrored, stable=_whole(batch), is_shadow=True), *found]

    def levels(self, stage: Stage) -> Levels:
        stages = num_stages(self.plan)
        told = shadow_levels if stage.is_shadow else levels
        return told(self.gates, stages)


def play(rng: np.random.Generator, game: Play, stage: Stage) -> Flagged:
    """[rollouts, looks] whether any gate fails, and whether all pass and the plan lets it go on."""
    verdicts = [_errors(rng, game, stage)]
    if not stage.is_shadow:
        verdicts += _ratios(rng, game, stage)
    fails = np.logical_or.reduce([fail for fail, _ in verdicts])
    passes = np.logical_and.reduce([passed for _, passed in verdicts])
    return fails, passes & _may_go_on(game, stage)


def _may_go_on(game: Play, stage: Stage) -> Flags:
    """[looks] enough requests and time, by the plan."""
    number = np.arange(1, game.looks + 1)
    enough = number * min(stage.candidate, stage.stable) >= game.plan.min_samples
    return np.asarray(enough & (number * game.plan.max_s / game.looks >= game.plan.min_s))


def _errors(rng: np.random.Generator, game: Play, stage: Stage) -> Flagged:
    number, share = np.arange(1, game.looks + 1), game.traffic.error_ratio
    ours = draw_failures(rng, game.shape, stage.candidate, share + game.effect.error_increase)
    theirs = draw_failures(rng, game.shape, stage.stable, share)
    mine, others = (ours, number * stage.candidate), (theirs, number * stage.stable)
    seen = error_bounds(mine, others, game.levels(stage))
    return seen.flagged(ERRORS, game.gates.max_error_increase)


def _ratios(rng: np.random.Generator, game: Play, stage: Stage) -> Iterator[Flagged]:
    ours = draw_streams(rng, game.shape, stage.candidate, game.traffic)
    theirs = draw_streams(rng, game.shape, stage.stable, game.traffic)
    for gate, bound in ratios_on(game.gates):
        candidate, stable = _with(ours[gate.figure], gate, game.effect), theirs[gate.figure]
        seen = bounds_of(gate, bound, candidate, stable, game.levels(stage))
        enough = np.minimum(candidate.num, stable.num) >= START
        fails, passes = seen.flagged(gate, bound)
        yield fails & enough, passes & enough


def _with(stream: Stream, gate: Gate, effect: Effect) -> Stream:
    ratio = effect.ratio(gate.figure)
    if gate.figure in LINEAR:
        return replace(stream, mean=stream.mean * ratio)
    return replace(stream, mean=stream.mean + np.log(ratio))


def _whole(number: float) -> int:
    return max(round(number), 1)
