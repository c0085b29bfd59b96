"""Paired measurement: all arms decode the same batch in turn before the next batch begins.

The machine's speed drifts; a ratio of arms that ran seconds apart does not. Who goes first rotates
from batch to batch, so that no arm always finds the caches warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from outrider.bench.arm import Arm, Timing
from outrider.bench.bootstrap import interval, resamples
from outrider.bench.workload import Prompt


@dataclass(slots=True)
class Pairing:
    """Timings by arm and batch: `timings[arm][i]` belongs to `batches[i]`."""

    batches: list[Sequence[Prompt]] = field(default_factory=list)
    timings: dict[str, list[Timing]] = field(default_factory=dict)

    def tokens_per_s(self, arm: str, kind: str | None = None) -> float:
        chosen = self._of_kind(arm, kind)
        return sum(t.tokens for t in chosen) / sum(t.seconds for t in chosen)

    def ratio(self, arm: str, base: str, kind: str | None = None) -> float:
        """Tokens per second of `arm` over those of `base`, over all batches (of a kind)."""
        return self.tokens_per_s(arm, kind) / self.tokens_per_s(base, kind)

    def interval(self, arm: str, base: str, kind: str | None = None) -> tuple[float, float]:
        """95 % interval of the ratio, by bootstrap over batches, pairs kept together."""
        pairs = [[(t.tokens, t.seconds) for t in self._of_kind(name, kind)] for name in (arm, base)]
        data = np.array(pairs, dtype=np.float64)  # [2 arms, batches, (tokens, seconds)]
        sums = data[:, resamples(data.shape[1])].sum(axis=2)  # [2, resamples, 2]
        speeds = sums[..., 0] / sums[..., 1]
        return interval(speeds[0] / speeds[1])

    def _of_kind(self, arm: str, kind: str | None) -> list[Timing]:
        pairs = zip(self.batches, self.timings[arm], strict=True)
        return [t for batch, t in pairs if kind is None or batch[0].kind == kind]


def measure(
    arms: Sequence[Arm],
    batches: Sequence[Sequence[Prompt]],
    *,
    num_repeats: int,
    progress: Callable[[str], None],
) -> Pairing:
    """Run every batch on every arm, `num_repeats` times."""
    pairing = Pairing(timings={arm.name: [] for arm in arms})
    for index in range(num_repeats * len(batches)):
        batch = batches[index % len(batches)]
        pairing.batches.append(batch)
        turn = index % len(arms)
        for arm in [*arms[turn:], *arms[:turn]]:
            pairing.timings[arm.name].append(arm.decode(batch))
        progress(f"{index + 1}/{num_repeats * len(batches)}")
    return pairing
