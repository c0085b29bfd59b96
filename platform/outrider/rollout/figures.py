"""The figures of one request, by the catalogue's names."""

from __future__ import annotations

import math

from outrider.serving.sample import Sample
from outrider.telemetry import meters

ACCEPTANCE = meters.DRAFT_ACCEPTANCE_RATIO.name
NUM_TOKENS = meters.NUM_EMITTED_TOKENS.name
# These may be 0: they are told as they are, not as logarithms.
LINEAR = frozenset({ACCEPTANCE, meters.QUEUE_S.name, NUM_TOKENS})
_SHORTEST_S = 1e-3  # shorter times are not told apart: tokens of one round come as one piece


def figures_of(sample: Sample) -> dict[str, float]:
    """What an answered request tells. What has no meaning for it is left out."""
    told = {
        meters.FIRST_TOKEN_S.name: _seconds(sample.first_token_s),
        meters.INTER_TOKEN_S.name: _seconds(_inter_token_s(sample)),
        meters.TOTAL_S.name: _seconds(sample.total_s),
        meters.TOKENS_PER_S.name: _over(sample.num_tokens, max(sample.total_s, _SHORTEST_S)),
        meters.TOKENS_PER_ROUND.name: _over(sample.num_tokens, sample.num_rounds),
        ACCEPTANCE: sample.accepted / sample.drafted if sample.drafted else None,
        NUM_TOKENS: float(sample.num_tokens),
        meters.QUEUE_S.name: sample.queue_s,
    }
    return {name: value for name, value in told.items() if value is not None}


def scaled(name: str, value: float) -> float:
    """As it is summed and tested: the logarithm, whose differences are ratios and which a few long
    waits don't rule. Figures of `LINEAR` stay as they are.
    """
    return value if name in LINEAR else math.log(value)


def typical(name: str, mean: float) -> float:
    """Back from a mean of scaled values: a geometric mean, or the mean itself."""
    return mean if name in LINEAR else math.exp(mean)


def _inter_token_s(sample: Sample) -> float | None:
    """Mean from token to token behind the first, of a streamed answer."""
    if sample.first_token_s is None or sample.num_tokens <= 1:
        return None
    return (sample.total_s - sample.first_token_s) / (sample.num_tokens - 1)


def _seconds(value: float | None) -> float | None:
    return None if value is None else max(value, _SHORTEST_S)


def _over(above: float, below: float) -> float | None:
    return above / below if above > 0 and below > 0 else None
