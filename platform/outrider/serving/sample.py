"""What one request tells about the release that decoded it. Plain data, cheap to send as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from outrider.serving.split import Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request that ended in an arm of a rollout, or a mirrored one (`is_shadow`).

    One whose client left, and one that its sender forced into an arm, is no sample.
    """

    arm: Arm
    kind: str = ""  # the sender's label
    is_shadow: bool = False
    error: str = ""  # code of what went wrong on the server's side; empty: it was served
    finish_reason: str = ""  # stop | length | error, of the first choice
    mode: str = ""  # speculative | plain
    num_prompt_tokens: int = 0
    num_tokens: int = 0  # of the answer
    num_rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    queue_s: float | None = None  # in the engine, before the first round it was in
    first_token_s: float | None = None  # from its arrival at the gateway; None: not streamed
    total_s: float = 0.0  # from its arrival at the gateway


class Likeness(StrEnum):
    """What came of comparing a mirrored answer with the one that was sent."""

    SAME = "same"  # token by token
    NEAR_TIE = "near_tie"  # the target's two likeliest tokens were close where they part
    MISMATCH = "mismatch"
    UNCOMPARED = "uncompared"  # drawn without the coupled rule, or one of them did not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A mirrored answer beside the one that was sent."""

    likeness: Likeness
    request_id: str = ""
    position: int | None = None  # of the first token that differs
    margin: float | None = None  # logits between the target's two likeliest tokens there


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far somebody has read. Another `epoch`: the gateway began anew."""

    epoch: str = ""
    number: int = 0  # of the last line that was read


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came since a cursor, oldest first. Counts are of the whole epoch."""

    cursor: Cursor
    samples: tuple[Sample, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    num_lost: int = 0  # lines that were overwritten before they were read
    num_shadows_dropped: int = 0  # not mirrored for want of room
    num_over_limit: int = 0  # sent to stable because the candidate had its share of the minute
