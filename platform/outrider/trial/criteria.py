"""Thresholds written down before the first request, and the decision that follows from them. Pure.

A criterion passes or fails where the whole confidence interval lies on one side of its bound, and
is inconclusive where the bound lies inside. Any failure rejects; all passed adopts; else undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the measurements say of one criterion."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"  # no data is inconclusive too: never pass, never fail


class Decision(StrEnum):
    """What follows for the release."""

    ADOPT = "adopt"
    REJECT = "reject"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One criterion against what was measured."""

    criterion: str  # its key in the settings
    subject: str  # what it was applied to: `8 in flight`, `1 in flight, chat`
    bound: float
    value: float | None  # None: nothing was measured
    low: float | None = None
    high: float | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The decision and all that led to it, in the order of the criteria."""

    decision: Decision
    findings: tuple[Finding, ...]
    reason: str  # one line: the first failure, or what is undecided
