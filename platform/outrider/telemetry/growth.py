"""What was counted between two looks at counters that only grow. Pure."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from outrider.core import Counters

NAMES = tuple(Counters.__slots__)


def growth(before: Counters, now: Counters) -> Counters:
    """`now` less `before`, positions too; all of `now` where the counting has begun anew.

    It has where a count went down: a replaced engine begins at 0. What the lost one had counted
    and not told is lost, and nothing is told twice. Seconds don't decide: added in another order,
    the same ones make a little less.
    """
    start = Counters() if went_down(before, now) else before
    return Counters(**{name: _less(getattr(now, name), getattr(start, name)) for name in NAMES})


def went_down(before: Counters, now: Counters) -> bool:
    """Whether it counts anew: a count only grows."""
    counts = (name for name in NAMES if isinstance(getattr(now, name), int))
    return any(getattr(now, name) < getattr(before, name) for name in counts)


def _less(now: Any, before: Any) -> Any:
    """Of two numbers, or of two lists by position: a list only gets longer."""
    if isinstance(now, list):
        return [more - less for more, less in zip_longest(now, before, fillvalue=0)]
    return now - before
