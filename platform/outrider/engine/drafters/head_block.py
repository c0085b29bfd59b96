"""One row's block while the head grows it, and how sure the head is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from outrider.engine.draft_length import LEAST_SLOT_GAIN
from outrider.engine.drafters import DraftRow
from outrider.engine.drafters.head_memory import HeadMemory

BUCKETS = (0.2, 0.4, 0.6, 0.75, 0.9)  # of the first position's largest probability
BLIND = len(BUCKETS) + 1  # the bucket of an offer made without a look
NUM_BUCKETS = BLIND + 1
MAX_POSITION = 7  # draft positions from here on share their classes


def levels(bucket: int, length: int) -> tuple[int, ...]:
    """Acceptance classes of the draft positions, given the bucket of the first."""
    return tuple(min(i, MAX_POSITION) * NUM_BUCKETS + bucket for i in range(length))


def bucket_of(top: float) -> int:
    return sum(top >= edge for edge in BUCKETS)


@dataclass(slots=True)
class HeadBlock:
    """One row's block while it grows."""

    row: DraftRow
    length: int  # tokens wanted
    memory: HeadMemory
    tokens: list[int] = field(default_factory=list)
    qs: list[torch.Tensor | None] = field(default_factory=list)  # each [vocab] or one-hot
    failure: str | None = None
    is_over: bool = False  # by the head's own doubt
    hope: float = 1.0  # product of the largest probabilities so far
    logits: torch.Tensor | None = None  # [V_d] of the next position
    state: torch.Tensor | None = None  # [H] behind the last position read

    def see(self, logits: torch.Tensor, state: torch.Tensor, top: float) -> None:
        """What the head says of the next position, before anything is drawn there (law 4)."""
        self.logits, self.state = logits, state
        if not math.isfinite(top):
            self.failure = "draft logits are not finite"
            self.memory.forget()
            return
        self.hope *= top
        # The rule has asked for the first one, and knew this much about it.
        self.is_over = bool(self.tokens) and self.hope < LEAST_SLOT_GAIN

    @property
    def wants_more(self) -> bool:
        return self.failure is None and not self.is_over and len(self.tokens) < self.length
