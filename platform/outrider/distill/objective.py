"""What a head is taught: to say what the target would, and how fast it learns."""

from __future__ import annotations

import math

import torch

from outrider.distill.batch import Batch
from outrider.distill.unrolled import unrolled
from outrider.engine.head import DraftHead

FLOOR = 0.05  # of the highest learning rate, at the end


def loss_of(
    head: DraftHead,
    embedding: torch.Tensor,
    batch: Batch,
    *,
    num_steps: int,
    step_weight: float,
) -> torch.Tensor:
    """Cross-entropy of the head with the target's distribution over what the head can say.

    The mean over a step's positions, summed over steps by powers of `step_weight`:
    sum_j w^j mean_p sum_v -p(v) log q_j(v).
    """
    embeddings = embedding[batch.following]
    total = embeddings.new_zeros(())
    features = batch.features.to(embeddings.dtype)
    unrolling = unrolled(head, features, embeddings, num_steps, batch.begin)
    for step, states in enumerate(unrolling):
        told = batch.is_told(step)
        logits = head.logits(states[told]).float()  # [N, V_d]
        if len(logits):
            entropy = _cross_entropy(logits, batch.top_ids[told], batch.top_probs[told])
            total = total + step_weight**step * entropy
    return total


def _cross_entropy(logits: torch.Tensor, ids: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
    """[N, V_d], [N, K], [N, K]: the mean over N."""
    said = (probs * logits.gather(-1, ids)).sum(-1)
    return (probs.sum(-1) * logits.logsumexp(-1) - said).mean()


def rate_at(update: int, num_updates: int, *, peak: float, warmup_share: float) -> float:
    """Learning rate of an update, from 0: up in a line, down as half a cosine to FLOOR of it."""
    warmup = max(1, round(warmup_share * num_updates))
    if update < warmup:
        return peak * (update + 1) / warmup
    done = (update - warmup) / max(1, num_updates - warmup)
    return peak * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))
