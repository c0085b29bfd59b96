"""What was found when everything was last looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outrider.bulk.glance import JobGlance
from outrider.console.course import Course
from outrider.console.ports import RolloutsSeen
from outrider.serving.health import Condition
from outrider.serving.messages import ReplicaStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What could not be asked is empty, and named in `notes`."""

    course: Course
    conditions: Mapping[str, Condition] = field(default_factory=dict)  # by release
    stats: Mapping[str, tuple[ReplicaStats, ...]] = field(default_factory=dict)  # by release
    rollouts: RolloutsSeen = RolloutsSeen()  # noqa: RUF009 - frozen
    jobs: tuple[JobGlance, ...] = ()
    run_id: str = ""
    notes: tuple[str, ...] = ()
