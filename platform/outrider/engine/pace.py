"""What a speculative round gave against plain decoding: what the breakers are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.engine.breaker import Observation
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

    def of_engine(self, outcomes: Sequence[RowOutcome], tried: Sequence[RowOutcome]) -> Observation:
        spent = 1.0 + self.extra_s / self.plain_s
        mean_emitted = sum(outcome.emitted for outcome in outcomes) / self.num_rows
        bound = _FASTEST * (1.0 + self.num_drafted / self.num_rows) / spent
        ratio = mean_emitted / (spent * self.slowness)
        failed = sum(outcome.failed for outcome in tried) / len(tried)
        return Observation(min(ratio, bound), bound, failed)
