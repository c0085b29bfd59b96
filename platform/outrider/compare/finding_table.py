"""The table of one release's findings: what failed first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.compare.markup import Table
from outrider.trial.judgement import Finding, Verdict

ORDER = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
NOT_JUDGED = "too few pairs"


def finding_table(findings: Sequence[Finding]) -> Table:
    """Failures, what is inconclusive, what passed, then what had too few pairs to be judged."""
    rows = [
        (
            one.verdict.value if one.counts else NOT_JUDGED,
            f"{one.criterion} {one.bound:g}",
            one.subject,
            _measured(one),
        )
        for one in sorted(findings, key=_rank)
    ]
    headings = ("verdict", "criterion", "of", "measured")
    return Table(headings=headings, rows=rows, num_names=3)


def _measured(one: Finding) -> str:
    if one.value is None:
        return "nothing"
    if one.low is None or one.high is None:
        return f"{one.value:.3g}"
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _rank(one: Finding) -> tuple[bool, int]:
    return not one.counts, ORDER.index(one.verdict)
