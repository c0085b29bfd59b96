"""Windows of what a release does, out of what its replicas tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outrider.core import Counters
from outrider.serving.messages import ReplicaStats
from outrider.telemetry import meters


@dataclass(frozen=True, slots=True)
class Series:
    """Where a series of windows stands. A replica's counters begin at 0 with its process."""

    at_s: float  # monotonic, the end of the last window
    last: Mapping[str, Counters] = field(default_factory=dict)  # by replica, as it told them
    total: Counters = field(default_factory=Counters)

    def after(
        self, stats: Sequence[ReplicaStats], now_s: float, release: str
    ) -> tuple[Series, dict[str, float] | None]:
        """The series with one window more, and its figures; None where nothing was emitted.

        `release`: whose replicas count. Of the others only the end is noted, so that what a
        candidate decoded before it became stable is not counted when it does.
        """
        done, total = Counters(), Counters()
        counted = [each for each in stats if each.release == release]
        for each in counted:
            done += _since(each.counters, self.last.get(each.replica, Counters()))
        total += self.total
        total += done
        told = {each.replica: each.counters for each in stats}
        series = Series(now_s, {**self.last, **told}, total)
        span = now_s - self.at_s
        if not done.emitted or span <= 0:
            return series, None
        figures = meters.figures_of(done)
        ratios = {name: value for name, value in figures.items() if not name.startswith("num_")}
        now = {
            meters.TOKENS_PER_S: done.emitted / span,
            meters.NUM_REPLICAS: len(counted),
            meters.NUM_RUNNING: sum(each.num_running for each in counted),
            meters.NUM_WAITING: sum(each.num_waiting for each in counted),
        }
        named = {meter.name: float(value) for meter, value in now.items()}
        return series, meters.in_window({**named, **ratios})

    def final(self, duration_s: float) -> dict[str, float]:
        """Figures of the whole run."""
        total = self.total
        final = {**meters.figures_of(total), meters.DURATION_S.name: duration_s}
        if total.active_s:
            final[meters.TOKENS_PER_S.name] = total.emitted / total.active_s
        return final


def _since(now: Counters, before: Counters) -> Counters:
    """What was counted in between; lists are left out: they are no series."""
    numbers = (name for name in now.__slots__ if not isinstance(getattr(now, name), list))
    return Counters(**{name: getattr(now, name) - getattr(before, name) for name in numbers})
