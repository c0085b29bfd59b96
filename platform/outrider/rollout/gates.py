"""The gates as tests: which figure each one is about, and how much chance of error it may take.

FAIL. A whole rollout rolls a candidate that is no worse than the floors back with a chance of at
most `alpha`. It is divided by union bounds, in advance, so that nothing seen changes a share:
evenly over the shadow and the steps of the canary, in each of which evidence begins anew; in a
step, half for all requests and half for the kinds of them, of which `MOST_KINDS` are kept, whether
there are that many or not; then evenly over the gates that are on. Looks need no share: the
bounds hold at every one.

PASS. A candidate goes on when it passes every gate, so one that is worse than any floor gets past
that gate with a chance of at most `alpha`, undivided (Berger 1982, "Multiparameter hypothesis
testing and acceptance sampling": an intersection-union test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.figures import ACCEPTANCE, LINEAR
from outrider.rollout.sequential import Array, Stream, gap, radius
from outrider.rollout.shares import Counts, highest, lowest, of_each
from outrider.rollout.sums import MOST_KINDS
from outrider.telemetry import meters

Flags = NDArray[np.bool_]
Flagged = tuple[Flags, Flags]  # whether it fails, whether it passes

_LEAST_EFFECT = 0.02  # effects below this are not looked for
_USUAL_ACCEPTANCE = 0.5  # a ratio of acceptances, told as a difference


@dataclass(frozen=True, slots=True)
class Gate:
    """A ratio of the candidate's figure to stable's, and the side on which it must lie. Of errors,
    the difference of their shares.
    """

    key: str  # of GateSettings
    figure: str
    words: str
    is_floor: bool


@dataclass(frozen=True, slots=True)
class Levels:
    """Chances of error of one test."""

    fail: float
    passed: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """It fails where it lies beyond the gate as a whole, and passes where it lies within; the end
    that is compared for a failure has the level `fail`, the other one `passed`.
    """

    estimate: Array
    low: Array
    high: Array

    def flagged(self, gate: Gate, bound: float) -> Flagged:
        if gate.is_floor:
            return self.high < bound, self.low >= bound
        return self.low > bound, self.high <= bound


RATIOS = (
    Gate("min_speed_ratio", meters.TOKENS_PER_S.name, "tokens per second", is_floor=True),
    Gate("min_acceptance_ratio", ACCEPTANCE, "acceptance", is_floor=True),
    Gate(
        "min_tokens_per_round_ratio",
        meters.TOKENS_PER_ROUND.name,
        "tokens per round",
        is_floor=True,
    ),
    Gate(
        "max_first_token_ratio",
        meters.FIRST_TOKEN_S.name,
        "time to the first token",
        is_floor=False,
    ),
    Gate(
        "max_inter_token_ratio",
        meters.INTER_TOKEN_S.name,
        "time from token to token",
        is_floor=False,
    ),
    Gate("max_total_ratio", meters.TOTAL_S.name, "time to the whole answer", is_floor=False),
)

ERRORS = Gate(
    "max_error_increase",
    meters.FAILURE_RATIO.name,
    "share of failed requests",
    is_floor=False,
)


def ratios_on(gates: GateSettings) -> list[tuple[Gate, float]]:
    """The ratios that are judged, and their bounds."""
    told = ((gate, float(getattr(gates, gate.key))) for gate in RATIOS)
    return [(gate, bound) for gate, bound in told if bound > 0]


def num_stages(plan: PlanSettings) -> int:
    """How often evidence begins anew in a rollout: in the shadow and in each step."""
    return len(plan.weights) + (1 if plan.shadow_share > 0 else 0)


def shadow_levels(gates: GateSettings, stages: int) -> Levels:
    """Errors are all that is tested there."""
    return Levels(gates.alpha / stages, gates.alpha)


def levels(gates: GateSettings, stages: int) -> Levels:
    """Of one gate over all requests of a step. Errors are a gate, too."""
    return Levels(gates.alpha / stages / 2 / (len(ratios_on(gates)) + 1), gates.alpha)


def kind_levels(gates: GateSettings, stages: int) -> Levels:
    """Of one gate over one kind of request."""
    return Levels(levels(gates, stages).fail / MOST_KINDS, gates.alpha)


def error_bounds(
    candidate: tuple[Counts, Counts], stable: tuple[Counts, Counts], levels: Levels
) -> Bounds:
    """Of the difference of two shares, failed requests of all; each has its own bounds, which
    hold together by a union bound.
    """
    fail, passed = levels.fail / 2, levels.passed / 2
    return Bounds(
        np.asarray(candidate[0] / candidate[1] - stable[0] / stable[1]),
        of_each(lowest, *candidate, fail) - of_each(highest, *stable, fail),
        of_each(highest, *candidate, passed) - of_each(lowest, *stable, passed),
    )


def bounds_of(
    gate: Gate, bound: float, candidate: Stream, stable: Stream, levels: Levels
) -> Bounds:
    """A linear figure's ratio is tested as the difference candidate - bound * stable, whose
    interval is told as that of the ratio (Fieller's, at the bound).
    """
    is_linear = gate.figure in LINEAR
    seen = gap(candidate, stable, bound if is_linear else 1.0)
    scale = _scale(bound, is_linear=is_linear)
    below, above = (levels.passed, levels.fail) if gate.is_floor else (levels.fail, levels.passed)
    ends = (
        seen.difference,
        seen.difference - radius(seen, scale, below),
        seen.difference + radius(seen, scale, above),
    )
    if is_linear:
        return Bounds(*(bound + end / stable.mean for end in ends))
    return Bounds(*(np.exp(end) for end in ends))


def _scale(bound: float, *, is_linear: bool) -> float:
    """The effect one looks for: what lies between the bound and no difference at all."""
    if is_linear:
        return max(abs(1.0 - bound), _LEAST_EFFECT) * _USUAL_ACCEPTANCE
    return max(abs(math.log(bound)), _LEAST_EFFECT)
