"""Which prompts are for tuning, and which are kept for confirmation. Pure.

Within each kind the prompts are ordered by a hash of their ids, and the first share of them
confirms: every kind is in both parts, and prompts of one kind that come or go move none of
another, and at most one of their own from part to part for each.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from outrider.config.schema import Part
from outrider.trial.case import Case


def cases_of(part: Part, cases: Sequence[Case], confirmation_share: float) -> tuple[Case, ...]:
    """The cases of `part`, in their order."""
    kept = _kept_back(cases, confirmation_share)
    wanted = part is Part.CONFIRMATION
    return tuple(case for case in cases if (case.name in kept) is wanted)


def _kept_back(cases: Sequence[Case], share: float) -> set[str]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        names[case.kind].append(case.name)
    kept = set[str]()
    for same in names.values():
        kept.update(sorted(same, key=_hash)[: _count(share, len(same))])
    return kept


def _count(share: float, num: int) -> int:
    """Half of an odd one is for tuning; rounding to even would move two at once."""
    return int(share * num + 0.5 - 1e-9)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
