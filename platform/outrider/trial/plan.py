"""In which portions the prompts are decoded. Pure.

One at a time, each prompt is a batch, so that it is paired with itself. With more in flight a
batch has twice as many requests, of all kinds, so that it is full most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from outrider.bench.workload import mixed
from outrider.trial.case import Case

MIN_BATCHES = 8  # fewer pairs have no interval worth the name: prompts are decoded again for it
FULLNESS = 2  # requests of a batch / in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What each contender decodes in its turn."""

    number: int  # among those of its number in flight
    in_flight: int
    cases: tuple[Case, ...]  # their names are unique


def batches(
    cases: Sequence[Case], in_flight: int, num_passes: int, min_batches: int = MIN_BATCHES
) -> list[Batch]:
    """Every case `num_passes` times, more often where there would be too few batches.

    The last round of a number in flight may go over some cases once more, so that every batch is
    equally large.
    """
    size = 1 if in_flight == 1 else FULLNESS * in_flight
    num_batches = -(-num_passes * len(cases) // size)
    if in_flight > 1:
        num_batches = max(num_batches, min_batches)
    supply = cycle(mixed(cases))
    return [
        Batch(number=number, in_flight=in_flight, cases=_named_apart(tuple(islice(supply, size))))
        for number in range(num_batches)
    ]


def warmup(cases: Sequence[Case], in_flight: int) -> Batch:
    """Other prompts, that every contender decodes before anything is timed: one of each kind at
    least, and as many as are in flight."""
    num_kinds = len({case.kind for case in cases})
    supply = tuple(islice(cycle(mixed(cases)), max(num_kinds, in_flight)))
    return Batch(number=0, in_flight=in_flight, cases=_named_apart(supply))


def _named_apart(cases: Sequence[Case]) -> tuple[Case, ...]:
    """A case that comes twice in one batch goes by `name#2` the second time."""
    seen: dict[str, int] = {}
    named = []
    for case in cases:
        seen[case.name] = count = seen.get(case.name, 0) + 1
        named.append(case if count == 1 else replace(case, name=f"{case.name}#{count}"))
    return tuple(named)
