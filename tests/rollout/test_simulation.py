"""How often the gates are wrong, over many rollouts looked at many times."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.effect import EVEN, Effect, Traffic, at_floors, slower
from outrider.rollout.simulated import wilson
from outrider.rollout.simulation import simulate, told

GATES = GateSettings()
CAUTIOUS = PlanSettings(min_samples=100, min_s=900.0, max_s=14400.0)
FEW = Traffic(per_s=0.15)  # looks begin at the first requests that count
STEADY = Traffic(per_s=2.0)
FLOORS = at_floors(GATES)  # least favourable of all that must not be rolled back
HICCUPS = replace(STEADY, hiccup_share=0.02)


@pytest.mark.parametrize(
    ("effect", "traffic"),
    [(EVEN, FEW), (FLOORS, FEW), (FLOORS, STEADY), (FLOORS, HICCUPS)],
    ids=["even, few requests", "at the floors, few", "at the floors", "at the floors, hiccups"],
)
def test_candidates_no_worse_than_the_floors_are_seldom_rolled_back_nor_those_on_them_promoted(
    effect: Effect, traffic: Traffic
) -> None:
    """2,000 rollouts, 100 looks at each, every step as long as the plan lets it be."""
    report = simulate(GATES, CAUTIOUS, effect=effect, traffic=traffic)
    assert (report.num_rollouts, report.num_looks) == (2000, 100)
    assert wilson(report.num_ever_failed, report.num_rollouts)[1] < GATES.alpha
    if effect is FLOORS:
        assert report.num_promoted <= report.num_rollouts * GATES.alpha


def test_most_candidates_that_are_slower_by_a_tenth_are_rolled_back_and_none_is_promoted() -> None:
    report = simulate(GATES, CAUTIOUS, effect=slower(0.1), traffic=replace(STEADY, per_s=5.0))
    assert report.num_rolled_back > 0.9 * report.num_rollouts
    assert report.num_promoted <= 0.01 * report.num_rollouts


def test_most_equal_candidates_are_promoted_and_next_to_none_is_rolled_back() -> None:
    report = simulate(GATES, CAUTIOUS, effect=EVEN, traffic=STEADY)
    assert report.num_promoted > 0.8 * report.num_rollouts
    assert wilson(report.num_ever_failed, report.num_rollouts)[1] < GATES.alpha


def test_the_slower_a_candidate_the_oftener_and_the_sooner_it_is_rolled_back() -> None:
    reports = [
        simulate(GATES, CAUTIOUS, num_rollouts=300, effect=slower(share), traffic=STEADY)
        for share in (0.0, 0.08, 0.12, 0.2, 0.4)
    ]
    for better, worse in pairwise(reports):
        assert better.num_rolled_back <= worse.num_rolled_back
        assert better.num_promoted >= worse.num_promoted
    middles = [one.detected[len(one.detected) // 2] for one in reports[2:]]
    assert middles == sorted(middles, reverse=True)


def test_the_same_seed_gives_the_same_report_and_another_one_another() -> None:
    reports = [
        simulate(GATES, CAUTIOUS, num_rollouts=50, effect=slower(0.1), seed=seed)
        for seed in (1, 1, 2)
    ]
    assert reports[0] == reports[1] != reports[2]


def test_it_is_told_in_words() -> None:
    text = "\n".join(told(GATES, CAUTIOUS, per_s=2.0, num_rollouts=200))
    for words in ("as good as stable: ", "at every bound: ", "10% slower: ", "false rollbacks"):
        assert words in text
    assert "until it is promoted: " in text
