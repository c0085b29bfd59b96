"""What a speculative round gave against plain decoding: what the breakers are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.engine.breaker import Observation
from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.engine.row_outcome import RowOutcome

_FASTEST = 1.3  # a round is never faster than its prediction by more than this factor


@dataclass(frozen=True, slots=True)
class Pace:
    """A round's seconds against plain decoding of the same rows, prefill apart."""

    num_rows: int
    num_drafted: int
    plain_s: float  # predicted, of a plain round of these rows
    extra_s: float  # predicted, that drafting and its scoring added
    slowness: float  # real over predicted seconds
    was_unprepared: bool = False  # the model had to prepare for this size first

    def of_row(self, outcome: RowOutcome) -> Observation:
        """Tokens a row got over those that its seconds would have given it plainly.

        Its seconds are its even share of a plain round and its share, by tokens drafted, of the
        extra ones; for one row alone this is the engine's ratio.
        """
        part = outcome.drafted / self.num_drafted if self.num_drafted else 0.0
        spent = 1.0 + self.num_rows * part * self.extra_s / self.plain_s
        bound = _FASTEST * (outcome.drafted + 1) / spent
        ratio = outcome.emitted / (spent * self.slowness)
        return Observation(min(ratio, bound), bound, float(outcome.failed))

    def sums(self, seconds: float, outcomes: Sequence[RowOutcome]) -> DraftSums:
        """Seconds of the round, and those that plain decoding of its tokens would have taken.

        Without what drafting added the round gives each row one token; each one beyond costs its
        row's share of a further plain round, on a machine as slow or fast as it was just now:

            s - e w + (emitted - num_rows) * p w / num_rows

        with s `seconds`, e `extra_s`, p `plain_s` and w `slowness`; tokens that a stop cut are not
        emitted. Without drafts it is s. Where drafting made the model prepare for another size,
        that is drafting's cost: s and w are then as predicted. A clock that stood still tells
        nothing.
        """
        if seconds <= 0.0:
            return NOTHING_DRAFTED
        steady_s, slowness = seconds, self.slowness
        if self.was_unprepared and self.num_drafted:
            steady_s, slowness = seconds / self.slowness, 1.0
        num_beyond = sum(outcome.emitted - 1 for outcome in outcomes)
        beyond_s = num_beyond * self.plain_s / self.num_rows
        plain_s = steady_s + (beyond_s - self.extra_s) * slowness
        return DraftSums(rounds_s=seconds, plain_rounds_s=plain_s)

    def of_engine(self, outcomes: Sequence[RowOutcome], tried: Sequence[RowOutcome]) -> Observation:
        spent = 1.0 + self.extra_s / self.plain_s
        mean_emitted = sum(outcome.emitted for outcome in outcomes) / self.num_rows
        bound = _FASTEST * (1.0 + self.num_drafted / self.num_rows) / spent
        ratio = mean_emitted / (spent * self.slowness)
        failed = sum(outcome.failed for outcome in tried) / len(tried)
        return Observation(min(ratio, bound), bound, failed)
