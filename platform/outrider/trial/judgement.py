"""What the measurements say of a release, criterion by criterion, and what follows."""

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
    num_pairs: int | None = None  # of what has an interval
    verdict: Verdict = Verdict.INCONCLUSIVE
    counts: bool = True  # False: too few pairs to say, it keeps nothing from being adopted


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The decision and all that led to it, in the order of the criteria."""

    decision: Decision
    findings: tuple[Finding, ...]
    reason: str  # one line: the first failure, or what is undecided
