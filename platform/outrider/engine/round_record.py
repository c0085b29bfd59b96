"""Evidence of the five stages of one round, for one row. Made only when tracing is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """What each stage left behind. Token ids only; no text."""

    request_id: str
    round: int
    num_rows: int  # rows in the round
    # 1 propose
    drafter: str
    drafted: tuple[int, ...]
    q: tuple[float, ...]  # probability each drafted token was drawn with; 1.0 for one-hot
    draft_s: float  # of the whole round
    failure: str | None
    # 2 score
    p: tuple[float, ...]  # the target's probability of each drafted token (raw, temperature 1)
    score_s: float  # of the whole round
    # 3 accept
    accepted: int
    evaluated: int
    uniforms: tuple[float, ...]
    # 4 resample
    token: int  # the token behind the accepted ones
    resampled: bool  # True after a rejection, False for the bonus or plain token
    # 5 repeat
    length_before: int
    length_after: int
    kv_length_after: int
    stop_reason: str | None


TraceSink = Callable[[RoundRecord], None]
