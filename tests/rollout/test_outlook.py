"""A rollout as others lay it out: the same story as in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from course import FAILS, GATES, OPEN, PASSES, PLAN, Course

from outrider.rollout.command import Verb
from outrider.rollout.outlook import Outlook, outlook, past
from outrider.rollout.phase import Phase
from outrider.rollout.store import Rollout
from outrider.rollout.sums import Sums
from outrider.rollout.verdict import Judgement, Verdict
from outrider.rollout.words import explain


def seen(course: Course, judgement: Judgement = OPEN) -> Outlook:
    rollout = Rollout(
        status=course.status, plan=course.plan, gates=GATES, sums=Sums(), judgement=judgement
    )
    told = outlook(rollout, course.moves, course.now_s, is_controlled=True)
    words = "\n".join(explain(course.status, course.moves, judgement, course.plan, course.now_s))
    assert all(f"Next: {text}\n" in words for text in told.next)
    assert all(found.reason in words for found in told.findings)
    assert told.sentence in words
    offered = words.partition("You can: ")[2].partition("\n")[0]
    assert told.is_over or offered == ", ".join(f"action={verb}" for verb in told.verbs)
    return told


def test_a_canary_is_told_as_in_words() -> None:
    course = Course().reach(Phase.CANARY, step=1)
    course.looks(3, judgement=OPEN)
    told = seen(course)
    assert (told.phase, told.step, told.weight, told.elapsed_s) == (Phase.CANARY, 1, 0.25, 3.0)
    assert (told.weights, told.verdict) == (PLAN.weights, Verdict.INCONCLUSIVE)
    assert told.findings == OPEN.findings
    assert [move.phase for move in told.moves][-2:] == [Phase.CANARY, Phase.CANARY]
    assert told.verbs == (Verb.ABORT, Verb.PAUSE, Verb.PROMOTE)
    assert (told.candidate, told.stable, told.is_over) == ("new", "old", False)


def test_what_is_taken_back_shows_the_findings_that_ended_it() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(judgement=FAILS)
    told = seen(course, Judgement())  # the step's own evidence is gone with it
    assert told.is_over
    assert told.findings == FAILS.findings
    assert (told.verdict, told.verdict_reason) == (Verdict.FAIL, FAILS.reason)
    assert (told.verbs, told.next, told.weight) == ((), (), 0.0)


def test_what_ends_before_anything_was_measured_has_no_findings() -> None:
    course = Course().reach(Phase.DEPLOYING)
    course.look(Verb.ABORT)
    told = seen(course, Judgement())
    assert (told.findings, told.achieved_ratio) == ((), None)
    assert told.reason == "aborted by ada@host"


def test_an_end_keeps_the_share_that_its_last_step_achieved() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(judgement=FAILS)
    course.moves[-1] = replace(course.moves[-1], achieved_ratio=0.06)
    assert seen(course, Judgement()).achieved_ratio == 0.06


def test_what_waits_for_an_operator_can_be_approved() -> None:
    course = Course(replace(PLAN, approvals=(0.05,))).reach(Phase.CANARY)
    assert Verb.APPROVE not in seen(course).verbs
    course.looks(10)
    told = seen(course, PASSES)
    assert told.waits
    assert Verb.APPROVE in told.verbs


def test_a_pause_can_be_ended_and_no_time_counts() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(Verb.PAUSE)
    course.looks(20, judgement=OPEN)
    told = seen(course)
    assert (told.is_paused, told.elapsed_s) == (True, 1.0)
    assert Verb.RESUME in told.verbs
    assert Verb.PAUSE not in told.verbs


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.DEPLOYING, Phase.KEEPING])
def test_nothing_is_offered_that_is_refused_where_it_stands(phase: Phase) -> None:
    course = Course().reach(phase, step=2 if phase is Phase.KEEPING else 0)
    assert Verb.PROMOTE not in seen(course, PASSES).verbs


def test_every_phase_of_a_good_way_can_be_told() -> None:
    course, phases = Course(), []
    while not course.status.phase.is_over:
        phases.append(seen(course, PASSES).phase)
        course.look()
    assert seen(course).weight == 1.0
    assert len(set(phases)) == 8


def test_a_past_one_says_who_was_tried_and_how_it_ended() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(judgement=FAILS)
    told = past(course.status)
    assert (told.candidate, told.phase, told.reason) == ("new", Phase.ROLLED_BACK, FAILS.reason)
    assert (told.rollout_id, told.began_s) == ("r1", 1000.0)
