"""What each release did, span by span, out of counters that its replicas tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from outrider.console.snapshot import Point
from outrider.core import Counters
from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.serving.messages import ReplicaStats
from outrider.telemetry.growth import growth, went_down


@dataclass(frozen=True, slots=True)
class Look:
    """What the replicas of one release told at a time."""

    now_s: float  # monotonic
    told: Mapping[str, ReplicaStats]  # by replica: those that have counted


@dataclass(frozen=True, slots=True)
class Course:
    """Points of all releases, oldest first.

    A point is what was counted between two looks at a release. A replica that was not in both of
    them, or that counts anew, is left out of it: what it did meanwhile has no span. Where nobody
    answered there is no point: a gap, not a 0.
    """

    keep_s: float
    points: tuple[Point, ...] = ()
    last: Mapping[str, Look] = field(default_factory=dict)  # by release

    def after(
        self,
        release: str,
        stats: Sequence[ReplicaStats],
        *,
        guard_phase: str,
        at_s: float,
        now_s: float,
    ) -> Course:
        """With one look more. `at_s` since 1970, `now_s` of a monotonic clock."""
        look = Look(now_s, {each.replica: each for each in stats if each.has_counted})
        if not look.told:
            return self
        # None of a time to come: where the clock is put back, what was told by it goes.
        kept = tuple(point for point in self.points if 0 <= at_s - point.at_s < self.keep_s)
        before = self.last.get(release)
        if before is not None and now_s > before.now_s:
            point = _point(release, before, look)
            kept = (*kept, replace(point, at_s=at_s, guard_phase=guard_phase))
        return replace(self, points=kept, last={**self.last, release: look})

    def without(self, gone: set[str]) -> Course:
        """Releases that were taken away: another one of that name would be another one."""
        return replace(
            self, last={name: look for name, look in self.last.items() if name not in gone}
        )

    def since(self, at_s: float) -> tuple[Point, ...]:
        """Points that ended after a time."""
        return tuple(point for point in self.points if point.at_s > at_s)


def _point(release: str, before: Look, now: Look) -> Point:
    """All but its end and its guard."""
    done, drafts = Counters(), NOTHING_DRAFTED
    for name, stats in now.told.items():
        earlier = before.told.get(name)
        if earlier is not None and not went_down(earlier.counters, stats.counters):
            done += growth(earlier.counters, stats.counters)
            drafts += stats.drafts.since(earlier.drafts)
    return _counted(release, now, now.now_s - before.now_s, done, drafts)


def _counted(release: str, now: Look, span_s: float, done: Counters, drafts: DraftSums) -> Point:
    return Point(
        release=release,
        at_s=0.0,
        span_s=span_s,
        num_replicas=len(now.told),
        num_running=sum(each.num_running for each in now.told.values()),
        num_waiting=sum(each.num_waiting for each in now.told.values()),
        emitted=done.emitted,
        drafted=done.drafted,
        evaluated=done.evaluated,
        accepted=done.accepted,
        num_rounds=done.num_rounds,
        rounds_s=drafts.rounds_s,
        plain_rounds_s=drafts.plain_rounds_s,
        rounds_by_draft_length=tuple(done.rounds_by_length),
        position_evaluated=tuple(done.position_attempts),
        position_accepted=tuple(done.position_accepts),
    )
