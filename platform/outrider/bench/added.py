"""How much later the first token comes on one side than on the other, prompt by prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outrider.bench.bootstrap import interval, resamples
from outrider.bench.figure import Figure, Unit
from outrider.bench.load import Answer


def added_first_token(
    ours: Sequence[Answer],
    theirs: Sequence[Answer],
    *,
    name: str,
    what: str,
    most_ms: float,
    conditions: str,
    details: dict[str, object],
) -> Figure:
    """The median of `ours` minus `theirs`, which answered the same prompts in the same order, in
    milliseconds, with a 95 % interval by bootstrap over prompts.
    """
    pairs = [(a.first_token_s, b.first_token_s) for a, b in zip(ours, theirs, strict=True)]
    added = np.array([1000 * (a - b) for a, b in pairs if a is not None and b is not None])
    low, high = interval(np.median(added[resamples(len(added))], axis=1))
    return Figure(
        name=name,
        what=what,
        value=float(np.median(added)),
        bound=most_ms,
        aim=most_ms,
        is_ceiling=True,
        unit=Unit.MILLISECONDS,
        low=low,
        high=high,
        conditions=conditions,
        details=details,
    )
