"""The figure that most comparisons end in: how many times as fast one arm is as another."""

from __future__ import annotations

from collections.abc import Mapping

from outrider.bench.figure import Figure
from outrider.bench.paired import Pairing

NO_DETAILS: Mapping[str, object] = {}


def ratio_figure(
    pairing: Pairing,
    arms: tuple[str, str],
    *,
    name: str,
    what: str,
    bound: float,
    aim: float,
    conditions: str,
    kind: str | None = None,
    details: Mapping[str, object] = NO_DETAILS,
) -> Figure:
    """Tokens per second of the first of `arms` over the second's, over all prompts (of a kind).

    The conditions name every arm's speed.
    """
    low, high = pairing.interval(*arms, kind)
    speeds = {arm: pairing.tokens_per_s(arm, kind) for arm in pairing.timings}
    measured = ", ".join(f"{arm} {speed:.1f}" for arm, speed in speeds.items())
    return Figure(
        name=name,
        what=what,
        value=pairing.ratio(*arms, kind),
        bound=bound,
        aim=aim,
        low=low,
        high=high,
        conditions=f"{conditions}; tok/s: {measured}",
        details=dict(details),
    )
