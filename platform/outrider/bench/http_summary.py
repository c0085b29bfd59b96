"""What a load was like for its clients: latencies, tokens per second, errors by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from outrider.bench.load import Answer

_POINTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds."""

    p50: float
    p95: float
    p99: float

    @staticmethod
    def of(values: Iterable[float | None]) -> Percentiles | None:
        """None where there is no value."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return Percentiles(*(float(point) for point in np.percentile(known, _POINTS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Latencies and tokens are those of full answers; streams only, where a stream is needed."""

    num_requests: int
    num_complete: int
    num_tokens: int
    seconds: float
    tokens_per_s: float
    first_token_s: Percentiles | None
    inter_token_s: Percentiles | None  # each request's mean
    gap_s: Percentiles | None  # from piece to piece: what a reader waits for
    total_s: Percentiles | None
    errors: dict[str, int]  # by kind and status

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def summarize(answers: Sequence[Answer], seconds: float) -> Summary:
    """`seconds`: how long it took all of them."""
    full = [answer for answer in answers if answer.error is None]
    num_tokens = sum(answer.num_tokens for answer in full)
    return Summary(
        num_requests=len(answers),
        num_complete=len(full),
        num_tokens=num_tokens,
        seconds=seconds,
        tokens_per_s=num_tokens / seconds if seconds > 0 else 0.0,
        first_token_s=Percentiles.of(answer.first_token_s for answer in full),
        inter_token_s=Percentiles.of(answer.inter_token_s for answer in full),
        gap_s=Percentiles.of(gap for answer in full for gap in _gaps(answer)),
        total_s=Percentiles.of(answer.total_s for answer in full),
        errors=dict(Counter(_error(answer) for answer in answers if answer.error is not None)),
    )


def _gaps(answer: Answer) -> list[float]:
    if not answer.streamed:
        return []
    return [float(gap) for gap in np.diff(answer.arrivals_s)]


def _error(answer: Answer) -> str:
    return f"{answer.error} {answer.status}" if answer.status else str(answer.error)
