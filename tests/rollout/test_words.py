"""A rollout in words: why it stands where it stands, and what would move it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from course import FAILS, OPEN, PASSES, PLAN, Course

from outrider.config.schema import OnStall
from outrider.rollout.command import Verb
from outrider.rollout.phase import Phase
from outrider.rollout.verdict import Judgement
from outrider.rollout.words import explain, line, of_past


def told(course: Course, judgement: Judgement = OPEN) -> str:
    lines = explain(course.status, course.moves, judgement, course.plan, course.now_s)
    assert all("\n" not in text for text in lines)
    return "\n".join(lines)


def test_a_canary_says_where_it_is_since_when_and_what_it_takes() -> None:
    course = Course().reach(Phase.CANARY, step=1)
    course.looks(3, judgement=OPEN)
    text = told(course)
    assert "canary, step 2 of 3, 25 % of the keys for 3 s" in text
    assert "at least 10 requests of each arm and 5 s" in text
    assert "undecided in 57 s (on_stall=hold): it stays as it is" in text
    assert "inconclusive tokens_per_s: 0.9 to 1.1 of stable's speed" in text
    assert "action=abort, action=pause, action=promote" in text


def test_a_rollback_says_which_evidence_ended_it() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(judgement=FAILS)
    text = told(course, Judgement())
    assert "Why: 0.7 of stable's speed; at least 0.95" in text
    assert "fail         tokens_per_s: 0.7 of stable's speed" in text
    assert "rollout.force=true" in text
    assert "undecided" not in text
    assert "rolled back, 0 s ago. It was taken back by itself" in text


def test_what_waits_for_an_operator_says_so() -> None:
    course = Course(replace(PLAN, approvals=(0.05,))).reach(Phase.CANARY)
    assert "and an operator approves" in told(course)
    assert "action=approve" not in told(course)
    course.looks(10)
    text = told(course, PASSES)
    assert "it waits for an operator: every gate is passed" in text
    assert "action=approve" in text


def test_a_pause_says_that_a_failing_gate_still_takes_it_back() -> None:
    course = Course().reach(Phase.CANARY)
    course.look(Verb.PAUSE)
    text = told(course)
    assert "5 % of the keys (paused) for 1 s." in text
    assert "Paused since 1970-01-01 00:16:" in text
    assert "action=resume" in text
    assert "action=pause" not in text


def test_what_was_refused_is_told() -> None:
    course = Course().reach(Phase.DEPLOYING)
    course.look(Verb.PROMOTE, health=None)
    assert "Why: promote was refused: the candidate is not ready" in told(course)


@pytest.mark.parametrize("policy", list(OnStall))
def test_a_stall_says_what_follows(policy: OnStall) -> None:
    course = Course(replace(PLAN, on_stall=policy)).reach(Phase.SHADOW)
    assert f"(on_stall={policy.value})" in told(course)
    course.looks(100, judgement=OPEN)
    assert "undecided after 60 s: 0.9 to 1.1" in told(course)


def test_every_phase_has_its_sentence_and_its_moves_read_as_lines() -> None:
    course = Course()
    while not course.status.phase.is_over:
        assert course.status.phase.sentence in told(course)
        course.look()
    lines = [line(move) for move in course.moves]
    assert lines[0] == "1970-01-01 00:16:41Z deploying: it is deployed beside old"
    assert "canary, step 1, 5 % of the keys: every gate is passed" in lines[3]


def test_a_line_names_the_operator() -> None:
    course = Course().reach(Phase.CANARY)
    (move,) = course.look(Verb.ABORT)
    assert line(move).endswith("aborted: aborted by ada@host")


def test_behind_a_promotion_it_says_how_long_it_can_still_be_taken_back() -> None:
    course = Course().reach(Phase.KEEPING, step=2)
    course.look()
    assert "old goes in 19 s; an abort until then brings it back" in told(course)
    assert "action=promote" not in told(course)


def test_a_past_rollout_is_one_line_with_its_day_its_candidate_and_its_end() -> None:
    course = Course().reach(Phase.CANARY, 0)
    course.look(judgement=FAILS)
    assert of_past(course.status) == (
        f"1970-01-01 00:16:40Z  r1  new (f-new)  rolled_back: {FAILS.reason}"
    )
