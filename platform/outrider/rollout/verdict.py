"""What the evidence says about one figure, and about a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """No data is inconclusive: never a pass, never a fail."""

    PASS = "pass"  # surely not worse than the floor
    FAIL = "fail"  # surely worse than the floor
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One figure of the candidate against stable's, or one that stands for itself."""

    figure: str  # a meter's name, e.g. tokens_per_s
    verdict: Verdict
    bound: float  # the floor: a ratio, a difference of shares, or a count
    reason: str  # in words, with the numbers
    group: str = ""  # kind of request; empty: all
    estimate: float | None = None  # as `bound`
    low: float | None = None  # confidence bounds that hold at every look
    high: float | None = None
    num_stable: int = 0  # requests
    num_candidate: int = 0
    counts: bool = True  # False: inconclusive, and keeps nothing from going on


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """FAIL where any finding that counts fails, PASS where all of them pass and there is one."""

    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        told = {found.verdict for found in self.findings if found.counts}
        if Verdict.FAIL in told:
            return Verdict.FAIL
        return Verdict.PASS if told == {Verdict.PASS} else Verdict.INCONCLUSIVE

    @property
    def reason(self) -> str:
        """Why, by the finding that decides."""
        for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE):
            for found in self.findings:
                if found.verdict is verdict and found.counts:
                    return found.reason
        return "every gate is passed" if self.findings else "nothing was measured"
