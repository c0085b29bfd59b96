"""What a rollout does next: good ways, bad ends, stalls and operators."""

from __future__ import annotations

from dataclasses import replace

import pytest
from course import FAILS, GATES, OPEN, PASSES, PLAN, Course, begun

from outrider.config.schema import OnStall
from outrider.rollout.command import Command, Verb
from outrider.rollout.layout import plan_of, wanted
from outrider.rollout.observation import Observation
from outrider.rollout.orders import was_refused
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.state import advance
from outrider.rollout.verdict import Judgement

TRIED = [Phase.SHADOW, Phase.CANARY, Phase.CONFIRMING]
MANUAL = replace(PLAN, on_stall=OnStall.MANUAL)


def test_a_good_candidate_goes_all_the_way_step_by_step() -> None:
    course = Course().reach(Phase.PROMOTED, step=2)
    assert [(move.phase, move.weight) for move in course.moves] == [
        (Phase.DEPLOYING, 0.0),
        (Phase.WARMING, 0.0),
        (Phase.SHADOW, 0.0),
        (Phase.CANARY, 0.05),
        (Phase.CANARY, 0.25),
        (Phase.CANARY, 0.5),
        (Phase.CONFIRMING, 0.5),
        (Phase.PROMOTING, 1.0),
        (Phase.KEEPING, 1.0),
        (Phase.PROMOTED, 1.0),
    ]
    canary = [move for move in course.moves if move.phase is Phase.CANARY]
    assert all(move.evidence[0]["verdict"] == "pass" for move in canary)
    assert course.now_s - course.status.began_s >= 4 * PLAN.min_s + PLAN.keep_s


def test_without_shadow_and_confirmation_those_phases_are_left_out() -> None:
    plan = replace(PLAN, shadow_share=0.0, confirm=False)
    course = Course(plan).reach(Phase.PROMOTED, step=2)
    assert {Phase.SHADOW, Phase.CONFIRMING}.isdisjoint(move.phase for move in course.moves)


def test_nothing_is_deployed_before_the_pre_webhook_answered() -> None:
    course = Course()
    assert not course.looks(100, pre_answered=False)
    assert wanted(course.status) == {"old"}
    course.look()
    assert course.status.phase is Phase.DEPLOYING


def test_it_meets_traffic_only_when_ready_and_warm() -> None:
    course = Course().reach(Phase.DEPLOYING)
    assert not course.looks(5, health=Health.STARTING)
    course.look()
    assert not course.looks(5, has_warmed=False)
    assert not course.looks(5, health=Health.STARTING)
    assert course.in_force.candidate is None
    course.look()
    assert course.status.phase is Phase.SHADOW


@pytest.mark.parametrize("phase", [Phase.SHADOW, Phase.CANARY])
def test_a_candidate_that_alone_fell_back_to_plain_decoding_is_taken_back(phase: Phase) -> None:
    course = Course().reach(phase)
    course.look(fallen="3 of 200 drafted tokens were accepted")
    assert course.status.phase is Phase.ROLLED_BACK
    assert "3 of 200" in course.status.reason
    assert course.weight == 0.0


@pytest.mark.parametrize("phase", [Phase.CONFIRMING, Phase.KEEPING])
def test_beside_confirmation_prompts_and_behind_a_promotion_the_guard_is_left_alone(
    phase: Phase,
) -> None:
    course = Course().reach(phase, step=2)
    course.looks(1, fallen="3 of 200 drafted tokens were accepted")
    assert course.status.phase is not Phase.ROLLED_BACK


def test_p15_three_requests_one_of_them_a_500_hold() -> None:
    course = Course().reach(Phase.CANARY)
    assert not course.looks(20, judgement=OPEN, num_stable=60, num_candidate=3)
    assert course.status.phase is Phase.CANARY
    assert course.weight == 0.05


def test_p15_a_verdict_over_too_few_requests_does_not_promote() -> None:
    course = Course().reach(Phase.CANARY)
    assert not course.looks(20, num_candidate=3)
    assert not course.looks(20, num_stable=3)
    assert course.weight == 0.05


def test_p16_clearly_worse_goes_back_at_once_and_stable_was_never_gone() -> None:
    course = Course().reach(Phase.CANARY, step=1)
    (move,) = course.look(judgement=FAILS, num_candidate=4, after_s=0.1)
    assert move.phase is Phase.ROLLED_BACK
    assert move.weight == 0.0
    assert move.reason == FAILS.reason
    assert move.evidence[0]["verdict"] == "fail"
    assert course.in_force.candidate is None
    assert course.in_force.stable == "old"
    assert wanted(course.status) == {"old"}


@pytest.mark.parametrize("phase", [*TRIED, Phase.PROMOTING, Phase.KEEPING])
def test_a_failing_verdict_takes_it_back_also_while_paused(phase: Phase) -> None:
    step = 0 if phase in (Phase.SHADOW, Phase.CANARY) else 2
    course = Course().reach(phase, step)
    course.look(Verb.PAUSE, after_s=0.1)
    course.look(judgement=FAILS, after_s=0.1)
    assert course.status.phase is Phase.ROLLED_BACK
    assert course.in_force.stable == "old"


@pytest.mark.parametrize("phase", [Phase.DEPLOYING, Phase.WARMING])
def test_a_candidate_that_never_started_has_failed(phase: Phase) -> None:
    course = Course().reach(phase)
    (move,) = course.look(health=Health.FAILED, failure="out of memory")
    assert move.phase is Phase.FAILED
    assert "out of memory" in move.reason


@pytest.mark.parametrize("phase", TRIED)
def test_a_lost_candidate_gives_stable_everything_and_one_that_restarts_waits(phase: Phase) -> None:
    course = Course().reach(phase, 2 if phase is Phase.CONFIRMING else 0)
    assert not course.looks(20, health=Health.STARTING)
    assert course.status.phase is phase
    (move,) = course.look(health=Health.FAILED, failure="killed")
    assert move.phase is Phase.ROLLED_BACK
    assert "killed" in move.reason


def test_a_step_takes_its_least_time_and_pauses_do_not_count() -> None:
    course = Course().reach(Phase.CANARY)
    course.looks(2)
    course.look(Verb.PAUSE)
    assert not course.looks(500)  # also more than its longest
    course.look(Verb.RESUME)
    assert not course.look()
    assert [move.weight for move in course.look()] == [0.25]


def test_no_data_is_neither_a_pass_nor_a_failure() -> None:
    course = Course().reach(Phase.SHADOW)
    nothing = {"judgement": Judgement(), "num_shadow": 0, "num_stable": 0, "num_candidate": 0}
    (told,) = course.looks(200, **nothing)  # that it has stalled, once
    assert told.phase is Phase.SHADOW
    assert "nothing was measured" in told.reason


@pytest.mark.parametrize("phase", TRIED)
def test_hold_tells_a_stall_once_and_goes_on_looking(phase: Phase) -> None:
    course = Course().reach(phase, 2 if phase is Phase.CONFIRMING else 0)
    weight = course.weight
    (told,) = course.looks(200, judgement=OPEN, confirmation=OPEN)
    assert (told.phase, told.weight) == (phase, weight)
    assert course.status.has_stalled
    assert not course.status.waits
    course.look()
    assert course.status.phase is not phase or course.weight > weight


@pytest.mark.parametrize("phase", TRIED)
def test_rollback_takes_back_what_is_undecided_when_its_time_is_over(phase: Phase) -> None:
    plan = replace(PLAN, on_stall=OnStall.ROLLBACK)
    course = Course(plan).reach(phase, 2 if phase is Phase.CONFIRMING else 0)
    began_s = course.now_s
    moves = course.looks(200, judgement=OPEN, confirmation=None)
    assert [move.phase for move in moves] == [Phase.ROLLED_BACK]
    assert moves[0].at_s - began_s == PLAN.max_s
    assert "undecided" in moves[0].reason


@pytest.mark.parametrize("phase", TRIED)
def test_manual_waits_for_an_operator_who_may_let_it_go_on(phase: Phase) -> None:
    course = Course(MANUAL).reach(phase, 2 if phase is Phase.CONFIRMING else 0)
    weight = course.weight
    assert len(course.looks(200, judgement=OPEN, confirmation=OPEN)) == 1
    assert "undecided" in course.status.waits
    approved, moved = course.look(Verb.APPROVE, judgement=OPEN, confirmation=OPEN)
    assert (approved.phase, approved.who) == (phase, "ada@host")
    assert moved.weight > weight
    assert not course.status.waits


def test_a_start_that_takes_too_long_is_told_once_or_has_failed() -> None:
    for policy, end in [
        (OnStall.HOLD, Phase.DEPLOYING),
        (OnStall.MANUAL, Phase.DEPLOYING),
        (OnStall.ROLLBACK, Phase.FAILED),
    ]:
        course = Course(replace(PLAN, on_stall=policy)).reach(Phase.DEPLOYING)
        (told,) = course.looks(200, health=Health.STARTING)
        assert told.phase is end
        assert not course.status.waits


def test_a_weight_that_needs_approval_is_left_only_with_it_and_only_where_gates_pass() -> None:
    course = Course(replace(PLAN, approvals=(0.25,))).reach(Phase.CANARY, step=1)
    course.look(Verb.APPROVE)  # before anything is asked: worth nothing
    assert "refused" in course.status.reason
    (asked,) = course.looks(30)
    assert asked.weight == 0.25
    assert course.status.waits
    (approved,) = course.look(Verb.APPROVE, judgement=OPEN)
    assert (approved.weight, approved.who) == (0.25, "ada@host")
    assert not course.looks(3, judgement=OPEN)
    assert [move.weight for move in course.look()] == [0.5]


def test_an_approval_of_passed_gates_is_none_of_a_stall() -> None:
    course = Course(replace(MANUAL, approvals=(0.05,))).reach(Phase.CANARY)
    course.looks(10)
    course.look(Verb.APPROVE, judgement=OPEN)
    assert len(course.looks(200, judgement=OPEN)) == 1
    assert course.weight == 0.05
    assert "undecided" in course.status.waits


def test_confirmation_decides_promotion_and_its_failure_takes_back() -> None:
    for found, end in [(PASSES, Phase.PROMOTING), (FAILS, Phase.ROLLED_BACK)]:
        course = Course().reach(Phase.CONFIRMING, step=2)
        assert not course.looks(20, confirmation=None)
        (move,) = course.look(confirmation=found)
        assert move.phase is end
        assert move.evidence


def test_the_canarys_gates_hold_while_the_confirmation_is_decoded() -> None:
    course = Course().reach(Phase.CONFIRMING, step=2)
    course.look(judgement=FAILS, confirmation=PASSES)
    assert course.status.phase is Phase.ROLLED_BACK


def test_nothing_moves_by_itself_while_the_service_or_stable_is_away() -> None:
    for away in ({"health": None}, {"is_stable_there": False}):
        course = Course().reach(Phase.CANARY)
        assert not course.looks(100, **away)
        course.look(Verb.ABORT, **away)
        assert course.status.phase is Phase.ABORTED


@pytest.mark.parametrize("phase", list(Phase))
def test_abort_works_wherever_it_is_not_over(phase: Phase) -> None:
    if phase.is_over:
        return
    late = (Phase.CONFIRMING, Phase.PROMOTING, Phase.KEEPING)
    course = Course().reach(phase, 2 if phase in late else 0)
    (move,) = course.look(Verb.ABORT)
    assert (move.phase, move.who, move.weight) == (Phase.ABORTED, "ada@host", 0.0)
    assert course.in_force.stable == "old"
    assert not course.looks(50)


def test_behind_a_promotion_it_goes_back_only_to_a_stable_that_is_there() -> None:
    course = Course().reach(Phase.KEEPING, step=2)
    for away in ({"is_stable_there": False}, {"health": None}):
        assert not course.look(Verb.ABORT, **away)
        assert "refused" in course.status.reason
    (told,) = course.looks(5, judgement=FAILS, is_stable_there=False)
    assert (told.phase, told.weight) == (Phase.KEEPING, 1.0)
    course.look(judgement=FAILS)
    assert course.status.phase is Phase.ROLLED_BACK


def test_promote_passes_the_gates_but_not_a_candidate_that_is_not_ready() -> None:
    course = Course()
    assert not course.look(Verb.PROMOTE, pre_answered=False)
    course.look()
    assert not course.look(Verb.PROMOTE, health=Health.STARTING)
    assert course.status.reason == "promote was refused: the candidate is not ready"
    assert was_refused(course.status, Verb.PROMOTE)
    course.reach(Phase.CANARY)
    (move,) = course.look(Verb.PROMOTE, judgement=FAILS)
    assert not was_refused(course.status, Verb.PROMOTE)
    assert (move.phase, move.who, move.weight) == (Phase.PROMOTING, "ada@host", 1.0)
    assert move.evidence[0]["verdict"] == "fail"  # what was passed over is on record
    assert course.in_force.stable == "new"


def test_promotion_goes_on_when_plan_and_alias_are_in_force() -> None:
    course = Course().reach(Phase.PROMOTING, step=2)
    assert not course.looks(20, is_settled=False)
    assert wanted(course.status) == {"old", "new"}
    course.look()
    assert course.status.phase is Phase.KEEPING


def test_the_old_stable_stays_for_its_time_and_longer_while_paused() -> None:
    course = Course().reach(Phase.KEEPING, step=2)
    course.look(Verb.PAUSE)
    course.looks(100)
    assert wanted(course.status) == {"old", "new"}
    course.look(Verb.RESUME)
    course.reach(Phase.PROMOTED, step=2)
    assert wanted(course.status) == {"new"}


def test_who_and_why_are_on_record() -> None:
    course = Course().reach(Phase.CANARY)
    why = Command(verb=Verb.PAUSE, who="ada@host", at_s=0.0, why="a holiday")
    look = Observation(revision=course.status.revision, health=Health.READY, commands=(why,))
    status, (move,) = advance(course.status, look, PLAN, course.now_s)
    assert (move.who, move.reason) == ("ada@host", "paused by ada@host: a holiday")
    assert status.is_paused


def test_commands_of_one_look_are_obeyed_in_order_and_an_abort_always_wins() -> None:
    course = Course().reach(Phase.CANARY)
    moves = course.look(Verb.PAUSE, Verb.PROMOTE, Verb.ABORT, Verb.PROMOTE)
    assert [move.phase for move in moves] == [Phase.CANARY, Phase.PROMOTING, Phase.ABORTED]
    assert course.status.phase is Phase.ABORTED


def test_what_was_seen_under_another_revision_decides_nothing() -> None:
    status = begun()
    look = Observation(revision=status.revision, health=Health.READY, has_warmed=True)
    after, moves = advance(status, look, PLAN, 1001.0)
    assert [move.phase for move in moves] == [Phase.DEPLOYING]
    assert after.revision == status.revision + 1
    assert advance(after, look, PLAN, 1001.0) == (after, ())
    assert plan_of(after, PLAN, GATES).revision == after.revision


@pytest.mark.parametrize("phase", [p for p in Phase if not p.is_over])
def test_nothing_moves_forward_while_it_is_paused(phase: Phase) -> None:
    late = (Phase.CONFIRMING, Phase.PROMOTING, Phase.KEEPING)
    course = Course().reach(phase, 2 if phase in late else 0)
    status = course.status
    paused = replace(status, is_paused=True, paused_s=course.now_s + 50.0)  # its least time is over
    course.status = paused
    assert not course.looks(100)
    assert course.status == paused
