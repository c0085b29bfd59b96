"""Points are what was counted between two looks, and nothing else."""

from __future__ import annotations

from outrider.console.course import Course
from outrider.core import Counters, Mode
from outrider.engine.draft_sums import DraftSums
from outrider.serving.messages import ReplicaStats


def told(emitted: int, replica: str = "r0", *, phase: str = "closed", **load: int) -> ReplicaStats:
    """A replica that drafts two tokens a round, of which the first is accepted."""
    rounds = emitted // 2
    counters = Counters(
        drafted=2 * rounds,
        evaluated=2 * rounds,
        accepted=rounds,
        emitted=emitted,
        num_rounds=rounds,
        position_attempts=[rounds, rounds],
        position_accepts=[rounds, 0],
        rounds_by_length=[0, 0, rounds],
    )
    drafts = DraftSums(rounds_s=0.1 * rounds, plain_rounds_s=0.15 * rounds)
    return ReplicaStats(
        release="main",
        replica=replica,
        mode=Mode.SPECULATIVE,
        counters=counters if phase else Counters(),
        drafts=drafts,
        breaker_phase=phase,
        **load,
    )


def after(course: Course, at_s: float, *stats: ReplicaStats, release: str = "main") -> Course:
    return course.after(release, stats, guard_phase="closed", at_s=1000 + at_s, now_s=at_s)


def test_a_point_is_what_was_counted_since_the_last_look() -> None:
    course = after(Course(60.0), 0.0, told(100), told(0, "r1"))
    course = after(course, 2.0, told(140, num_running=3), told(20, "r1", num_waiting=1))
    (point,) = course.points
    assert (point.release, point.at_s, point.span_s, point.num_replicas) == ("main", 1002, 2, 2)
    assert (point.emitted, point.drafted, point.evaluated, point.accepted) == (60, 60, 60, 30)
    assert point.num_rounds == 30
    assert (round(point.rounds_s, 9), round(point.plain_rounds_s, 9)) == (3.0, 4.5)
    assert point.rounds_by_draft_length == (0, 0, 30)
    assert (point.position_evaluated, point.position_accepted) == ((30, 30), (30, 0))
    assert (point.num_running, point.num_waiting, point.guard_phase) == (3, 1, "closed")


def test_the_first_look_tells_nothing_yet() -> None:
    assert after(Course(60.0), 0.0, told(100)).points == ()


def test_a_replica_that_comes_later_tells_of_its_load_only() -> None:
    course = after(Course(60.0), 0.0, told(100))
    course = after(course, 2.0, told(110), told(5000, "new", num_running=2))
    assert (course.points[-1].emitted, course.points[-1].num_running) == (10, 2)
    assert after(course, 4.0, told(110), told(5006, "new")).points[-1].emitted == 6


def test_a_replica_that_counts_anew_is_left_out_once() -> None:
    course = after(after(Course(60.0), 0.0, told(100)), 2.0, told(8))
    assert course.points[-1].emitted == 0
    assert course.points[-1].rounds_s == 0.0
    assert after(course, 4.0, told(12)).points[-1].emitted == 4


def test_a_missing_look_is_a_gap_and_nothing_is_lost() -> None:
    course = after(after(Course(60.0), 0.0, told(100)), 2.0, told(110))
    course = after(course, 4.0)  # nobody answers
    course = after(course, 6.0, told(0, phase=""))  # its decode thread stands still
    assert [point.at_s for point in course.points] == [1002]
    course = after(course, 8.0, told(140))
    assert (course.points[-1].emitted, course.points[-1].span_s) == (30, 6.0)


def test_an_idle_engine_has_points_of_nothing() -> None:
    course = after(after(Course(60.0), 0.0, told(0)), 2.0, told(0))
    assert course.points[-1].emitted == 0
    assert after(course, 4.0, told(6)).points[-1].emitted == 6


def test_old_points_are_forgotten() -> None:
    course = Course(5.0)
    for second in range(10):
        course = after(course, second, told(2 * second))
    assert [point.at_s for point in course.points] == [1005, 1006, 1007, 1008, 1009]
    assert [point.at_s for point in course.since(1007)] == [1008, 1009]


def test_releases_are_strangers_and_one_that_comes_again_begins_anew() -> None:
    course = after(after(Course(60.0), 0.0, told(0)), 0.0, told(90), release="next")
    course = after(after(course, 2.0, told(4)), 2.0, told(96), release="next")
    assert [(each.release, each.emitted) for each in course.points] == [("main", 4), ("next", 6)]
    course = after(course.without({"next"}), 4.0, told(200), release="next")
    assert len(course.points) == 2


def test_a_clock_that_is_put_back_takes_what_it_told_before_with_it() -> None:
    course = Course(60.0)
    for now_s in (0.0, 2.0, 4.0):
        course = after(course, now_s, told(20 + round(now_s)))
    again = course.after("main", [told(40)], guard_phase="closed", at_s=504.0, now_s=6.0)
    (point,) = again.points
    assert (point.at_s, point.span_s, point.emitted) == (504.0, 2.0, 16)
