"""Which release may be tried, and what it begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from course import FAILS, GATES, OPEN, Course, begun, candidate

from outrider.core import UserError
from outrider.rollout.command import Verb
from outrider.rollout.layout import plan_of
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.start import begin, can_supersede, may_start, supersede
from outrider.rollout.status import Status
from outrider.serving.split import Plan

NEWER = candidate("f-newer", "newer")


def ended(phase: Phase) -> Status:
    course = Course().reach(Phase.CANARY if phase is not Phase.FAILED else Phase.DEPLOYING)
    if phase is Phase.ABORTED:
        course.look(Verb.ABORT)
    elif phase is Phase.FAILED:
        course.look(health=Health.FAILED)
    else:
        course.look(judgement=FAILS)
    assert course.status.phase is phase
    return course.status


def stalled() -> Course:
    course = Course().reach(Phase.CANARY)
    course.looks(100, judgement=OPEN)
    return course


@pytest.mark.parametrize("phase", [Phase.ABORTED, Phase.FAILED])
def test_p17_what_was_aborted_or_failed_may_be_tried_again(phase: Phase) -> None:
    may_start(candidate(), "f-old", None, [ended(phase)], force=False)


def test_p17_what_was_rolled_back_needs_force() -> None:
    history = [ended(Phase.ROLLED_BACK)]
    with pytest.raises(UserError, match=r"rolled back by r1 \(0\.7 of .*rollout\.force=true"):
        may_start(candidate(), "f-old", None, history, force=False)
    may_start(candidate(), "f-old", None, history, force=True)
    may_start(NEWER, "f-old", None, history, force=False)


def test_an_abort_after_force_does_not_clear_it_but_a_promotion_does() -> None:
    back = ended(Phase.ROLLED_BACK)
    aborted = replace(back, rollout_id="r2", phase=Phase.ABORTED, since_s=back.since_s + 10)
    with pytest.raises(UserError, match="rolled back by r1"):
        may_start(candidate(), "f-old", None, [aborted, back], force=False)
    promoted = replace(aborted, phase=Phase.PROMOTED)
    may_start(candidate(), "f-old", None, [promoted, back], force=False)


def test_stables_own_fingerprint_and_name_are_refused() -> None:
    with pytest.raises(UserError, match="release: f-old is what stable runs"):
        may_start(candidate("f-old"), "f-old", None, [], force=True)
    with pytest.raises(UserError, match="release: old is the name of the stable"):
        begin(
            candidate(name="old"),
            Plan(stable="old"),
            [],
            rollout_id="r",
            service="",
            stable_fingerprint="f-old",
            now_s=0.0,
        )


@pytest.mark.parametrize("phase", [p for p in Phase if not p.is_over])
def test_an_active_rollout_keeps_others_away_also_forced_ones(phase: Phase) -> None:
    late = (Phase.CONFIRMING, Phase.PROMOTING, Phase.KEEPING)
    active = Course().reach(phase, 2 if phase in late else 0).status
    with pytest.raises(UserError, match=r"r1 of f-new is active .*action=abort"):
        may_start(NEWER, "f-old", active, [], force=True)


def test_a_newer_release_takes_the_place_of_one_that_has_stalled() -> None:
    course = stalled()
    may_start(NEWER, "f-old", course.status, [], force=False)
    after, move = supersede(course.status, NEWER, course.now_s, "ada@host")
    assert after.phase is Phase.SUPERSEDED
    assert (move.weight, move.who) == (0.0, "ada@host")
    assert "f-newer" in move.reason
    assert plan_of(after, course.plan, GATES) == Plan(
        stable="old", salt="r1", revision=after.revision
    )


def test_not_of_one_that_is_held_by_an_operator_and_not_of_itself() -> None:
    course = stalled()
    assert can_supersede(NEWER, course.status)
    assert not can_supersede(candidate(), course.status)
    course.look(Verb.PAUSE, judgement=OPEN)
    assert not can_supersede(NEWER, course.status)


def test_its_first_plan_is_later_than_all_that_the_service_was_told() -> None:
    course = stalled()
    for in_force in (Plan(stable="old", revision=99), Plan(stable="old")):
        status = begin(
            NEWER,
            in_force,
            [course.status],
            rollout_id="r2",
            service="",
            stable_fingerprint="f-old",
            now_s=0.0,
        )
        after, _ = supersede(course.status, NEWER, 0.0, "ada@host")
        assert status.revision > max(in_force.revision, after.revision)


def test_it_begins_with_nothing_started() -> None:
    status = begun(criteria="digest")
    assert (status.phase, status.stable, status.criteria) == (Phase.PENDING, "old", "digest")
