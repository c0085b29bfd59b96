"""From figures to decisions: rules, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from outrider.config.schema import CriteriaSettings
from outrider.trial.criteria import digest, judge, not_the_first
from outrider.trial.judgement import Decision, Verdict
from outrider.trial.record import Figures, Ratio

CRITERIA = CriteriaSettings()
GOOD = {"memory_ratio": 1.0, "failure_ratio": 0.0, "num_mismatches": 0.0}


def ratio(low: float, high: float, num_pairs: int = 24) -> Ratio:
    return Ratio(value=(low + high) / 2, low=low, high=high, num_pairs=num_pairs)


def whole(speedup: Ratio | None = None, **metrics: float) -> Figures:
    """A release that meets everything but what is said."""
    even = ratio(0.9, 1.0)
    ratios = {"first_token_ratio": even, "inter_token_ratio": even, "total_ratio": even}
    if speedup is not None:
        ratios["speedup_ratio"] = speedup
    return Figures(contender="x", in_flight=1, metrics={**GOOD, **metrics}, ratios=ratios)


def group(speedup: Ratio) -> Figures:
    return Figures(
        contender="x", in_flight=1, group="chat", metrics={}, ratios={"speedup_ratio": speedup}
    )


def test_all_passed_adopts() -> None:
    judgement = judge([whole(ratio(1.2, 1.4)), group(ratio(1.0, 1.4))], CRITERIA)
    assert judgement.decision is Decision.ADOPT
    assert {found.verdict for found in judgement.findings} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ([whole(ratio(0.8, 0.95))], "speed-up 0.88 (0.80 to 0.95) at 1 in flight; at least 1"),
        ([whole(ratio(1.2, 1.4)), group(ratio(0.5, 0.8))], "at 1 in flight, chat; at least 0.9"),
        ([whole(ratio(1.2, 1.4), failure_ratio=0.1)], "share of failed requests 0.1"),
        ([whole(ratio(1.2, 1.4), num_mismatches=1.0)], "outputs that differ 1"),
        ([whole(ratio(1.2, 1.4), memory_ratio=1.6)], "peak memory 1.6"),
        (
            [
                replace(
                    whole(ratio(1.2, 1.4)),
                    ratios={**whole(ratio(1.2, 1.4)).ratios, "total_ratio": ratio(1.2, 1.3)},
                )
            ],
            "p95 to the whole answer 1.25 (1.20 to 1.30)",
        ),
    ],
)
def test_one_failure_rejects_whatever_else_passed(figures: list[Figures], words: str) -> None:
    judgement = judge(figures, CRITERIA)
    assert judgement.decision is Decision.REJECT
    assert words in judgement.reason


def test_a_bound_inside_the_interval_is_undecided() -> None:
    judgement = judge([whole(ratio(0.98, 1.05))], CRITERIA)
    assert judgement.decision is Decision.UNDECIDED
    assert "speed-up" in judgement.reason


def test_what_was_not_measured_neither_passes_nor_fails() -> None:
    assert judge([], CRITERIA).decision is Decision.UNDECIDED
    judgement = judge([whole(None)], CRITERIA)
    assert judgement.decision is Decision.UNDECIDED
    assert "was not measured" in judgement.reason


def test_a_group_of_few_pairs_neither_rejects_nor_keeps_from_being_adopted() -> None:
    few = group(ratio(0.5, 0.8, num_pairs=CRITERIA.min_pairs - 1))
    judgement = judge([whole(ratio(1.2, 1.4)), few], CRITERIA)
    assert judgement.decision is Decision.ADOPT
    assert judgement.findings[-1].verdict is Verdict.INCONCLUSIVE
    assert not judgement.findings[-1].counts


@pytest.mark.parametrize("decision", list(Decision))
def test_a_second_look_may_reject_and_never_adopts(decision: Decision) -> None:
    speedups = {
        Decision.ADOPT: ratio(1.2, 1.4),
        Decision.REJECT: ratio(0.5, 0.6),
        Decision.UNDECIDED: ratio(0.9, 1.1),
    }
    judgement = judge([whole(speedups[decision])], CRITERIA)
    assert not_the_first(judgement, 1) == judgement
    second = not_the_first(judgement, 2).decision
    assert second is (Decision.UNDECIDED if decision is Decision.ADOPT else decision)


@pytest.mark.parametrize("change", [{"min_speedup": 1.1}, {"max_mismatches": 1}])
def test_other_criteria_have_another_digest(change: dict[str, Any]) -> None:
    assert digest(CRITERIA) == digest(CriteriaSettings())
    assert digest(replace(CRITERIA, **change)) != digest(CRITERIA)
