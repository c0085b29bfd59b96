"""Which prompts a rung decodes, in which portions, and who is open at once. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from outrider.bench.workload import mixed
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.plan import Batch, batches

# Engines that are in memory beside their plain decoding. Each has weights, graph and KV cache in a
# process of its own (1.1 GB for the default model): seven need 8 GB. In a larger group the last
# would also be farther from the plain turn that it is paired with.
MAX_OPEN = 6


def in_order(cases: Sequence[Case]) -> list[Case]:
    """The order in which rungs take them: any beginning has its share of each kind.

    Within a kind by a hash of the name: files tend to go from short to long.
    """
    return mixed(sorted(cases, key=lambda case: (case.kind, _hash(case.name))))


def portions(cases: Sequence[Case], in_flight: int, num_passes: int, first: int) -> list[Batch]:
    """The batches of a rung's new cases, numbered from `first` on.

    More prompts are more work in proportion: with many in flight each prompt is asked for so many
    times in a pass, which is half as many batches as prompts.
    """
    made = batches(cases, in_flight, num_passes * in_flight, min_batches=1)
    return [replace(batch, number=first + batch.number) for batch in made]


def groups(candidates: Sequence[str]) -> list[tuple[str, ...]]:
    """At most MAX_OPEN each, as equal as can be."""
    num_groups = -(-len(candidates) // MAX_OPEN)
    size, larger = divmod(len(candidates), num_groups)
    ends = [size * n + min(n, larger) for n in range(num_groups + 1)]
    return [tuple(candidates[start:end]) for start, end in pairwise(ends)]


def distinct(candidates: Sequence[Contender], tell: Callable[[str], None]) -> list[Contender]:
    """Each release once, under the name that came first."""
    found: dict[str, Contender] = {}
    for one in candidates:
        first = found.setdefault(one.release.fingerprint, one)
        if first is not one:
            tell(f"{one.name} is the same release as {first.name}: measured once")
    return list(found.values())


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
