"""What all replicas of a release drafted lately, out of sums that only grow. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.serving.guard_state import Seen
from outrider.serving.messages import Pulse


@dataclass(frozen=True, slots=True)
class GuardWindow:
    """A replica that is seen for the first time, or that counts anew, tells nothing yet."""

    last: Mapping[str, DraftSums] = field(default_factory=dict)  # by replica, as it told them
    entries: tuple[tuple[float, DraftSums], ...] = ()  # when, and what had come since the last

    def after(self, pulses: Sequence[Pulse], now_s: float, length_s: float) -> GuardWindow:
        """With what came since, without what is older than `length_s`."""
        new = NOTHING_DRAFTED
        for pulse in pulses:
            new += _growth(self.last.get(pulse.replica), pulse.drafts)
        kept = tuple(entry for entry in self.entries if now_s - entry[0] < length_s)
        told = {pulse.replica: pulse.drafts for pulse in pulses}
        return GuardWindow(
            {**self.last, **told},
            (*kept, (now_s, new)) if new.drafted else kept,
        )

    def emptied(self) -> GuardWindow:
        """What came before says nothing about what comes now."""
        return GuardWindow(self.last)

    @property
    def seen(self) -> Seen:
        drafts = NOTHING_DRAFTED
        for _, some in self.entries:
            drafts += some
        span_s = self.entries[-1][0] - self.entries[0][0] if self.entries else 0.0
        return Seen(drafts=drafts, span_s=span_s)


def _growth(before: DraftSums | None, now: DraftSums) -> DraftSums:
    if before is None or now.drafted < before.drafted:
        return NOTHING_DRAFTED
    return now.since(before)
