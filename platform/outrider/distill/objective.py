"""What a head is taught: to say what the target would, and how fast it learns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from outrider.distill.batch import Batch
from outrider.distill.corpus import Example
from outrider.distill.unrolled import unrolled
from outrider.engine.head import DraftHead

FLOOR = 0.05  # of the highest learning rate, at the end


def loss_of(
    head: DraftHead, embedding: torch.Tensor, batch: Batch, *, weights: Sequence[float]
) -> torch.Tensor:
    """Cross-entropy of the head with the target's distribution over what the head can say.

    The mean over a step's positions, summed over as many steps as there are weights:
    sum_j w_j mean_p sum_v -p(v) log q_j(v).
    """
    embeddings = embedding[batch.following]
    total = embeddings.new_zeros(())
    features = batch.features.to(embeddings.dtype)
    unrolling = unrolled(head, features, embeddings, len(weights), batch.begin)
    for step, states in enumerate(unrolling):
        told = batch.is_told(step)
        logits = head.logits(states[told]).float()  # [N, V_d]
        if len(logits):
            entropy = _cross_entropy(logits, batch.top_ids[told], batch.top_probs[told])
            total = total + weights[step] * entropy
    return total


def weights_of(
    rows: Sequence[Example], whole: Sequence[Example], *, num_steps: int, step_weight: float
) -> list[float]:
    """Of each step's mean over `rows`, so that those of all parts of `whole` add up to its loss.

    w_j = `step_weight`^j n_j / N_j, with n_j and N_j positions that tell step j in the rows and in
    the whole; where the rows are the whole, it is the power alone.
    """
    some, all_ = (_num_told(each, num_steps) for each in (rows, whole))
    ratios = [n / total if total else 0.0 for n, total in zip(some, all_, strict=True)]
    return [step_weight**step * ratio for step, ratio in enumerate(ratios)]


def _num_told(rows: Sequence[Example], num_steps: int) -> list[int]:
    """By step, how many positions `Batch.is_told`."""
    return [sum(max(0, row.num_answer - 1 - step) for row in rows) for step in range(num_steps)]


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
