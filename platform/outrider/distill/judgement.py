"""How far a head's drafts would be accepted, position by position, on rows it has not learnt from.

A draft begins at every token of an answer. It goes on as the row does, so a position counts where
all before it were right: what is told of position j is told of drafts that got there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

import torch

from outrider.distill.batch import Batch
from outrider.distill.unrolled import shifted, unrolled
from outrider.engine.head import DraftHead

NUM_POSITIONS = 8  # tokens of the longest draft that is judged


@dataclass(slots=True)
class Judgement:
    """Counts by draft position; ratios are derived."""

    num: list[float] = field(default_factory=lambda: [0.0] * NUM_POSITIONS)
    agreed: list[float] = field(default_factory=lambda: [0.0] * NUM_POSITIONS)
    shared: list[float] = field(default_factory=lambda: [0.0] * NUM_POSITIONS)

    @property
    def agreement(self) -> list[float]:
        """[position] ratio of drafts whose token is the target's likeliest: greedy acceptance."""
        return _ratios(self.agreed, self.num)

    @property
    def overlap(self) -> list[float]:
        """[position] sum of min(p, q): acceptance at temperature 1 (Leviathan et al. 2023, 3.2)."""
        return _ratios(self.shared, self.num)

    @property
    def tokens_per_round(self) -> list[float]:
        """[k from 1] greedy tokens that a round with a draft of k emits, the target's one too."""
        return [1 + total for total in accumulate(accumulate(self.agreement, mul))]

    @property
    def score(self) -> float:
        """What heads are chosen by."""
        return self.tokens_per_round[-1]

    def metrics(self) -> dict[str, float]:
        """By names that end with the position, or the draft length, from 1."""
        told = {
            "agreement_ratio": self.agreement,
            "overlap_ratio": self.overlap,
            "tokens_per_round": self.tokens_per_round,
        }
        return {
            f"{name}_{place}": value
            for name, values in told.items()
            for place, value in enumerate(values, start=1)
        }


def judged(head: DraftHead, embedding: torch.Tensor, batches: Iterable[Batch]) -> Judgement:
    """Judge `head` by the rows of `batches`. `embedding` [V, H]: the target's."""
    found = Judgement()
    with torch.inference_mode():
        for batch in batches:
            _judge(found, head, embedding, batch)
    return found


def _judge(found: Judgement, head: DraftHead, embedding: torch.Tensor, batch: Batch) -> None:
    embeddings = embedding[batch.following].to(head.dtype)
    features = batch.features.to(head.dtype)
    alive = torch.ones_like(batch.likeliest, dtype=torch.bool)
    unrolling = unrolled(head, features, embeddings, NUM_POSITIONS, batch.begin)
    for step, states in enumerate(unrolling):
        alive = (shifted(alive, 1) if step else alive) & batch.is_told(step)
        logits = head.logits(states[alive]).float()  # [N, V_d]
        agrees = logits.argmax(-1) == batch.likeliest[alive]
        q = (logits - logits.logsumexp(-1, keepdim=True)).gather(-1, batch.top_ids[alive]).exp()
        found.num[step] += len(logits)
        found.agreed[step] += float(agrees.sum())
        found.shared[step] += float(torch.minimum(q, batch.top_probs[alive]).sum())
        alive = alive.masked_scatter(alive, agrees)


def _ratios(parts: list[float], wholes: list[float]) -> list[float]:
    return [part / whole if whole else 0.0 for part, whole in zip(parts, wholes, strict=True)]
