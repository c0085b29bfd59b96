"""What the service must look like in each phase."""

from __future__ import annotations

from dataclasses import asdict, replace

from course import GATES, PLAN, Course

from outrider.rollout.command import Verb
from outrider.rollout.layout import goal, plan_of, wanted
from outrider.rollout.phase import Phase
from outrider.rollout.status import Candidate, Status
from outrider.serving.split import Arm, choose

KEYS = [f"session-{i}" for i in range(2000)]


def on_the_new(course: Course) -> set[str]:
    return {key for key in KEYS if choose(course.in_force, key).release == "new"}


def test_p18_once_in_the_candidate_always_in_it_until_it_has_everything() -> None:
    course, before, shares = Course(), set[str](), []
    while not course.status.phase.is_over:
        course.look()
        now = on_the_new(course)
        assert before <= now
        before = now
        if course.moves and course.moves[-1].at_s == course.now_s:
            shares.append(len(now) / len(KEYS))
    assert [round(share, 1) for share in shares[:3]] == [0, 0, 0]
    for share, weight in zip(shares[3:], (0.05, 0.25, 0.5, 0.5, 1, 1, 1), strict=True):
        assert abs(share - weight) < 0.04


def test_p18_a_status_that_was_stored_gives_the_same_plan() -> None:
    course = Course().reach(Phase.CANARY, step=1)
    stored = asdict(course.status)
    again = Status(**{**stored, "candidate": Candidate(**stored["candidate"])})
    assert plan_of(again, PLAN, GATES) == course.in_force


def test_rollouts_try_different_keys_first() -> None:
    course = Course().reach(Phase.CANARY)
    first = on_the_new(course)
    course.status = replace(course.status, rollout_id="r2")
    assert first != on_the_new(course)


def test_a_shadow_has_no_weight_and_a_canary_no_shadow() -> None:
    plan = Course().reach(Phase.SHADOW).in_force
    assert (plan.candidate, plan.weight, plan.shadow_share) == ("new", 0.0, 1.0)
    assert plan.shadow_in_flight == PLAN.shadow_in_flight
    assert plan.near_tie == GATES.near_tie
    plan = Course().reach(Phase.CANARY).in_force
    assert (plan.candidate, plan.weight, plan.shadow_share) == ("new", 0.05, 0.0)


def test_exposure_is_limited_while_it_is_tried_and_not_once_it_is_stable() -> None:
    course = Course(replace(PLAN, most_per_minute=30)).reach(Phase.CANARY)
    assert course.in_force.most_per_minute == 30
    course.reach(Phase.PROMOTING, step=2)
    assert course.in_force.most_per_minute == 0
    assert course.in_force.stable == "new"


def test_a_request_cannot_force_its_way_to_a_candidate_that_is_not_tried() -> None:
    for phase in (Phase.PENDING, Phase.DEPLOYING, Phase.WARMING):
        plan = Course().reach(phase).in_force
        assert choose(plan, "key", Arm.CANDIDATE).release == "old"


def test_a_pause_changes_no_weight() -> None:
    course = Course().reach(Phase.CANARY, step=1)
    before = course.in_force
    course.look(Verb.PAUSE)
    assert replace(course.in_force, revision=before.revision) == before
    assert course.in_force.revision == before.revision + 1


def test_who_must_be_there() -> None:
    course = Course()
    names = {}
    while not course.status.phase.is_over:
        names[course.status.phase] = wanted(course.status)
        course.look()
    assert names.pop(Phase.PENDING) == {"old"}
    assert set(names.values()) == {frozenset({"old", "new"})}
    assert goal(course.status, PLAN, GATES).releases == {"new"}
