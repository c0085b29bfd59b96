"""What a plan's weight came to, and what came of the candidates, as the page /metrics tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from outrider.core import SamplingParams
from outrider.openai.call import Call, Endpoint
from outrider.serving.desk import Desk
from outrider.serving.gateway_metrics import GatewayMetrics
from outrider.serving.local import ScriptedRelease
from outrider.serving.sample import Likeness
from outrider.serving.split import Arm, Plan

ALONE = Plan(stable="main")
PLAN = Plan(stable="main", candidate="next", weight=0.25, salt="s")


def desk(plan: Plan) -> Desk:
    releases = {name: ScriptedRelease([]) for name in ("main", "next")}
    return Desk(releases, plan, most_calls=100)


def ask(to: Desk, num: int, forced: Arm | None = None) -> None:
    for index in range(num):
        call = Call(
            call_id="c", endpoint=Endpoint.TEXT, prompts=(str(index),), params=SamplingParams()
        )
        to.trip(call, forced=forced)


def shown(of: Desk, name: str) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    registry.register(GatewayMetrics(of))
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_the_achieved_share_is_near_the_weight_and_forced_requests_are_none_of_it() -> None:
    at = desk(PLAN)
    assert at.shares.ratio(Arm.CANDIDATE) is None
    ask(at, 400)
    ask(at, 400, forced=Arm.CANDIDATE)
    assert at.shares.ratio(Arm.CANDIDATE) == pytest.approx(0.25, abs=0.06)
    assert sum(at.shares.now.values()) == 400


@pytest.mark.parametrize(
    "change", [{"weight": 0.5}, {"salt": "t"}, {"candidate": None}, {"candidate": "main"}]
)
def test_another_split_is_counted_anew_and_the_total_goes_on(change: dict[str, object]) -> None:
    at = desk(PLAN)
    ask(at, 40)
    before = dict(at.shares.total)
    at.put(replace(PLAN, shadow_share=0.5, revision=1))  # the same split
    assert sum(at.shares.now.values()) == 40
    at.put(replace(PLAN, **change))  # type: ignore[arg-type]
    assert at.shares.now == {Arm.STABLE: 0, Arm.CANDIDATE: 0}
    ask(at, 10)
    assert sum(at.shares.total.values()) == 50
    assert all(at.shares.total[key] >= num for key, num in before.items())


def test_what_the_candidate_was_spared_is_stables_and_told() -> None:
    at = desk(replace(PLAN, weight=1.0, most_per_minute=3))
    ask(at, 10)
    assert at.shares.now == {Arm.STABLE: 7, Arm.CANDIDATE: 3}
    assert shown(at, "outrider_num_over_limit_total") == {("next",): 7}


def test_arms_are_shown_with_their_weight_before_anything_came() -> None:
    at = desk(ALONE)
    assert shown(at, "outrider_arm_weight") == {("main", "stable"): 1.0}
    assert shown(at, "outrider_num_compared_total") == {}
    at.put(PLAN)
    both = {("main", "stable"): 0.75, ("next", "candidate"): 0.25}
    assert shown(at, "outrider_arm_weight") == both
    assert shown(at, "outrider_num_routed_total") == dict.fromkeys(both, 0)
    assert shown(at, "outrider_num_compared_total") == {("next",): 0}
    assert shown(at, "outrider_max_calls") == {(): 100}


def test_what_came_of_a_candidate_stays_told_when_another_one_is_tried() -> None:
    at = desk(PLAN)
    for likeness in (*Likeness, Likeness.SAME):
        at.candidate_counts.compare("next", likeness)
    at.drop_shadow("next")
    at.put(replace(PLAN, stable="next", candidate="main"))
    assert shown(at, "outrider_num_compared_total") == {("main",): 0, ("next",): 4}
    assert shown(at, "outrider_num_mismatches_total")["next",] == 1
    assert shown(at, "outrider_num_near_ties_total")["next",] == 1
    assert shown(at, "outrider_num_shadows_dropped_total")["next",] == 1
    assert at.book.num_shadows_dropped == 0  # of another epoch
