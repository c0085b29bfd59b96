"""Thresholds written down before the first request, and the decision that follows from them. Pure.

1. A ratio with an interval passes or fails where its whole interval lies on one side of the
   bound, and is inconclusive where the bound lies inside. Memory, failures and mismatches have no
   interval: they pass or fail. What was not measured is inconclusive, never a pass, never a fail.
2. A group with fewer pairs than `min_pairs` is inconclusive and does not count.
3. Any failure rejects. All that counts passed: adopt. Else undecided.
4. Confirmation prompts that this release has seen before may reject it, and can't adopt it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from outrider.config.schema import CriteriaSettings
from outrider.config.typed import plain
from outrider.telemetry import meters
from outrider.tracking.fingerprint import fingerprint
from outrider.trial.group import ALL
from outrider.trial.judgement import Decision, Finding, Judgement, Verdict
from outrider.trial.record import Figures, Ratio

__all__ = ["Decision", "Finding", "Judgement", "Verdict", "digest", "judge", "not_the_first"]

LATENCIES = {
    "max_first_token_ratio": meters.FIRST_TOKEN_RATIO,
    "max_inter_token_ratio": meters.INTER_TOKEN_RATIO,
    "max_total_ratio": meters.TOTAL_RATIO,
}
CEILINGS = {  # without an interval; a contender that was compared with nothing has no mismatches
    "max_memory_ratio": meters.MEMORY_RATIO,
    "max_failure_ratio": meters.FAILURE_RATIO,
    "max_mismatches": meters.NUM_MISMATCHES,
}
NAMES = {
    "min_speedup": "speed-up",
    "min_group_speedup": "speed-up",
    "max_first_token_ratio": "p95 to the first token",
    "max_inter_token_ratio": "p95 from token to token",
    "max_total_ratio": "p95 to the whole answer",
    "max_memory_ratio": "peak memory",
    "max_failure_ratio": "share of failed requests",
    "max_mismatches": "outputs that differ",
}


def digest(criteria: CriteriaSettings) -> str:
    """sha256 of the criteria as canonical JSON: what was written down, in 64 digits."""
    return fingerprint(plain(criteria))


def judge(figures: Sequence[Figures], criteria: CriteriaSettings) -> Judgement:
    """The decision on one contender. `figures`: all of its own."""
    findings = tuple(found for one in figures for found in _findings(one, criteria))
    counting = [found for found in findings if found.counts]
    failed = [found for found in counting if found.verdict is Verdict.FAIL]
    unclear = [found for found in counting if found.verdict is Verdict.INCONCLUSIVE]
    if failed:
        return _judgement(Decision.REJECT, findings, failed)
    if unclear or not counting:
        return _judgement(Decision.UNDECIDED, findings, unclear)
    return Judgement(decision=Decision.ADOPT, findings=findings, reason="every criterion is met")


def not_the_first(judgement: Judgement, use: int) -> Judgement:
    """For confirmation prompts used `use` times by this release, this time included."""
    if use <= 1 or judgement.decision is not Decision.ADOPT:
        return judgement
    reason = f"use {use} of these confirmation prompts: only the first one can adopt"
    return replace(judgement, decision=Decision.UNDECIDED, reason=reason)


def told(found: Finding) -> str:
    """In words: speed-up 0.83 (0.80 to 0.86) at 8 in flight, chat; at least 0.9."""
    bound = f"at {'least' if found.criterion.startswith('min') else 'most'} {found.bound:g}"
    name = NAMES[found.criterion]
    if found.value is None:
        return f"{name} at {found.subject} was not measured; {bound}"
    interval = "" if found.low is None else f" ({found.low:.2f} to {found.high:.2f})"
    value = f"{found.value:g}" if found.low is None else f"{found.value:.2f}"
    return f"{name} {value}{interval} at {found.subject}; {bound}"


def _judgement(
    decision: Decision, findings: tuple[Finding, ...], why: Sequence[Finding]
) -> Judgement:
    more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
    reason = told(why[0]) + more if why else "nothing was measured"
    return Judgement(decision=decision, findings=findings, reason=reason)


def _findings(one: Figures, criteria: CriteriaSettings) -> Iterator[Finding]:
    subject = f"{one.in_flight} in flight"
    speedup = one.ratios.get(meters.SPEEDUP_RATIO.name)
    if one.group != ALL:
        found = _floor("min_group_speedup", f"{subject}, {one.group}", speedup, criteria)
        yield _small_apart(found, criteria.min_pairs)
        return
    yield _floor("min_speedup", subject, speedup, criteria)
    for key, meter in LATENCIES.items():
        yield _ceiling(key, subject, one.ratios.get(meter.name), getattr(criteria, key))
    for key, meter in CEILINGS.items():
        yield _plain_ceiling(key, subject, one.metrics.get(meter.name), getattr(criteria, key))


def _floor(key: str, subject: str, ratio: Ratio | None, criteria: CriteriaSettings) -> Finding:
    bound = getattr(criteria, key)
    found = _measured(key, subject, bound, ratio)
    if ratio is None or ratio.low < bound <= ratio.high:
        return found
    return replace(found, verdict=Verdict.PASS if ratio.low >= bound else Verdict.FAIL)


def _ceiling(key: str, subject: str, ratio: Ratio | None, bound: float) -> Finding:
    found = _measured(key, subject, bound, ratio)
    if ratio is None or ratio.low <= bound < ratio.high:
        return found
    return replace(found, verdict=Verdict.PASS if ratio.high <= bound else Verdict.FAIL)


def _plain_ceiling(key: str, subject: str, value: float | None, bound: float) -> Finding:
    found = Finding(criterion=key, subject=subject, bound=bound, value=value)
    if value is None:
        return found
    return replace(found, verdict=Verdict.PASS if value <= bound else Verdict.FAIL)


def _measured(key: str, subject: str, bound: float, ratio: Ratio | None) -> Finding:
    if ratio is None:
        return Finding(criterion=key, subject=subject, bound=bound, value=None)
    return Finding(
        criterion=key,
        subject=subject,
        bound=bound,
        value=ratio.value,
        low=ratio.low,
        high=ratio.high,
        num_pairs=ratio.num_pairs,
    )


def _small_apart(found: Finding, min_pairs: int) -> Finding:
    if (found.num_pairs or 0) >= min_pairs:
        return found
    return replace(found, verdict=Verdict.INCONCLUSIVE, counts=False)
