"""From what was seen in a step to a verdict of each gate. Pure.

1. In the shadow, answers that differ and errors are judged. Times are not: a repeated request
   runs behind those of users.
2. In the canary every gate is judged over all requests, and over each kind of request of which
   each arm has `min_group`. A kind may take a candidate back; it holds none up.
3. A figure that stable's requests do not have (nobody streams, stable does not draft) can't be
   compared: inconclusive, and it holds nothing up. One that only the candidate's lack does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from outrider.config.schema import GateSettings
from outrider.rollout.figures import LINEAR
from outrider.rollout.gates import (
    ERRORS,
    Bounds,
    Gate,
    Levels,
    bounds_of,
    error_bounds,
    kind_levels,
    levels,
    ratios_on,
    shadow_levels,
)
from outrider.rollout.moments import Moments
from outrider.rollout.phase import Phase
from outrider.rollout.sequential import START, Stream
from outrider.rollout.sums import Side, Sums
from outrider.rollout.tally import Tally
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.serving.sample import Likeness
from outrider.telemetry import meters


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of a comparison."""

    candidate: Tally
    stable: Tally
    kind: str = ""

    def named(self, words: str) -> str:
        return f"{words} ({self.kind})" if self.kind else words

    @property
    def least(self) -> int:
        return min(self.candidate.num_requests, self.stable.num_requests)


def judge(sums: Sums, gates: GateSettings, *, phase: Phase, num_stages: int) -> Judgement:
    """What a step's evidence says, at this or any other look.

    `num_stages`: how often evidence begins anew in this rollout (`gates.num_stages` of its plan).
    """
    if phase is Phase.SHADOW:
        return Judgement(findings=tuple(_in_shadow(sums, gates, num_stages)))
    if phase is Phase.CANARY:
        return Judgement(findings=tuple(_in_canary(sums, gates, num_stages)))
    return Judgement()


def _in_shadow(sums: Sums, gates: GateSettings, stages: int) -> Iterator[Finding]:
    pair = Pair(sums.of(Side.SHADOW), sums.of(Side.STABLE))
    yield _parity(sums, gates)
    yield _errors(pair, gates, shadow_levels(gates, stages))


def _in_canary(sums: Sums, gates: GateSettings, stages: int) -> Iterator[Finding]:
    if sums.num_compared:
        yield _parity(sums, gates)
    yield from _findings(_pair(sums), gates, levels(gates, stages))
    for kind in sums.kinds:
        pair = _pair(sums, kind)
        if pair.least >= gates.min_group:
            for found in _findings(pair, gates, kind_levels(gates, stages)):
                if found.estimate is not None:
                    yield replace(found, counts=found.verdict is not Verdict.INCONCLUSIVE)


def _pair(sums: Sums, kind: str = "") -> Pair:
    return Pair(sums.of(Side.CANDIDATE, kind), sums.of(Side.STABLE, kind), kind)


def _findings(pair: Pair, gates: GateSettings, levels: Levels) -> Iterator[Finding]:
    yield _errors(pair, gates, levels)
    for gate, bound in ratios_on(gates):
        yield _ratio(pair, gate, bound, levels)


def _parity(sums: Sums, gates: GateSettings) -> Finding:
    """A count, without chance: one answer too many that differs is one too many."""
    num, compared = sums.num_mismatches, sums.num_compared
    near = sums.likenesses.get(Likeness.NEAR_TIE, 0)
    told = f"{num} of {compared} mirrored answers differ, {near} near ties apart"
    if not compared:
        told = f"none of {sums.num_shadow} mirrored answers could be compared"
    within = num <= gates.max_mismatches
    return Finding(
        figure=meters.NUM_MISMATCHES.name,
        verdict=_verdict(is_worse=not within, is_fine=within and compared > 0),
        bound=float(gates.max_mismatches),
        reason=f"{told}; at most {gates.max_mismatches}",
        estimate=float(num) if compared else None,
        num_stable=compared,
        num_candidate=compared,
    )


def _errors(pair: Pair, gates: GateSettings, levels: Levels) -> Finding:
    (ours, theirs), bound = (pair.candidate, pair.stable), gates.max_error_increase
    found = _undecided(pair, ERRORS, bound, (ours.num_requests, theirs.num_requests), least=1)
    if not pair.least:
        return found
    mine, others = ((side.num_failed, side.num_requests) for side in (ours, theirs))
    found = _compared(found, ERRORS, error_bounds(mine, others, levels))
    reason = (
        f"{pair.named(ERRORS.words)} {found.estimate:+.3g} against stable's "
        f"({found.low:+.3g} to {found.high:+.3g}, {_requests(found)}); at most {bound:+g}"
    )
    return replace(found, reason=reason)


def _ratio(pair: Pair, gate: Gate, bound: float, levels: Levels) -> Finding:
    ours, theirs = pair.candidate.moments_of(gate.figure), pair.stable.moments_of(gate.figure)
    found = _undecided(pair, gate, bound, (ours.num, theirs.num), least=START)
    has_none = not theirs.num or (gate.figure in LINEAR and not theirs.total)
    if has_none and pair.stable.num_served >= START:
        told = f"{pair.named(gate.words)}: stable's requests show none, nothing can be compared"
        return replace(found, reason=told, counts=False)
    if has_none or min(ours.num, theirs.num) < START:
        return found
    bounds = bounds_of(gate, bound, _stream(ours), _stream(theirs), levels)
    found = _compared(found, gate, bounds)
    reason = (
        f"{pair.named(gate.words)} {found.estimate:.3g} of stable's "
        f"({found.low:.3g} to {found.high:.3g}, {_requests(found)}); "
        f"at {'least' if gate.is_floor else 'most'} {bound:g}"
    )
    return replace(found, reason=reason)


def _undecided(
    pair: Pair, gate: Gate, bound: float, nums: tuple[int, int], *, least: int
) -> Finding:
    """`nums`: requests that tell of it, the candidate's and stable's."""
    ours, theirs = nums
    return Finding(
        figure=gate.figure,
        verdict=Verdict.INCONCLUSIVE,
        bound=bound,
        reason=f"{pair.named(gate.words)}: {ours} requests against {theirs}; "
        f"{least} of each are needed",
        num_candidate=ours,
        num_stable=theirs,
        group=pair.kind,
    )


def _compared(found: Finding, gate: Gate, bounds: Bounds) -> Finding:
    is_worse, is_fine = bounds.flagged(gate, found.bound)
    return replace(
        found,
        verdict=_verdict(is_worse=bool(is_worse), is_fine=bool(is_fine)),
        estimate=float(bounds.estimate),
        low=float(bounds.low),
        high=float(bounds.high),
    )


def _requests(found: Finding) -> str:
    return f"{found.num_candidate} requests against {found.num_stable}"


def _verdict(*, is_worse: bool, is_fine: bool) -> Verdict:
    if is_worse:
        return Verdict.FAIL
    return Verdict.PASS if is_fine else Verdict.INCONCLUSIVE


def _stream(moments: Moments) -> Stream:
    return Stream(np.asarray(moments.num), np.asarray(moments.mean), np.asarray(moments.variance))
