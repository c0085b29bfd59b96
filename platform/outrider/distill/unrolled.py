"""The head run on many rows at once as it runs when it drafts from every position.

EAGLE-3's training-time test (arXiv 2503.01840, section 3.2): step 0 reads the target's
features; step j reads, at position p, what step j - 1 gave at p - 1. A draft that begins at i then
stands at p = i + j, and sees what a drafting head sees: the target's features up to i, and its own
states at i + 1 .. p. Tokens are those of the row, as if all before had been accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from outrider.engine.head import DraftHead

Keyed = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of a step, [B, n, heads, head_dim] each, repeated for the queries' heads."""


def unrolled(
    head: DraftHead, features: torch.Tensor, embeddings: torch.Tensor, num_steps: int
) -> Iterator[torch.Tensor]:
    """[B, n, F] and [B, n, H] (of the token behind each position) to states [B, n, H] by step.

    Step j means something from position j on.
    """
    positions = torch.arange(features.shape[1], device=features.device)
    states, steps = head.fuse(features), list[Keyed]()
    for step in range(num_steps):
        if step:
            states = shifted(states, 1)
        queries, keys, values = head.layer.project(states, embeddings, positions)
        repeats = queries.shape[-2] // keys.shape[-2]
        steps.append((keys.repeat_interleave(repeats, -2), values.repeat_interleave(repeats, -2)))
        states = head.layer.finish(states, _attended(queries, steps))
        yield states


def shifted(tensor: torch.Tensor, by: int) -> torch.Tensor:
    """[B, n, ...] with what stood at p - `by` at p, zeros before."""
    if by == 0:
        return tensor
    filling = (0, 0) * (tensor.dim() - 2)
    return F.pad(tensor[:, : max(0, tensor.shape[1] - by)], (*filling, min(by, tensor.shape[1]), 0))


def _attended(queries: torch.Tensor, steps: list[Keyed]) -> torch.Tensor:
    """[B, n, heads, head_dim] of the last step over its past."""
    step, (keys, values) = len(steps) - 1, steps[0]
    if step == 0:
        return F.scaled_dot_product_attention(
            queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), is_causal=True
        ).transpose(1, 2)
    num, scale = queries.shape[1], queries.shape[-1] ** -0.5
    seen = torch.ones(num, num, dtype=torch.bool, device=queries.device).tril(-step)
    scores = torch.einsum("bphd,bkhd->bhpk", queries, keys).masked_fill(~seen, -torch.inf)
    own = [shifted(each, step - at) for at, (each, _) in enumerate(steps[1:], start=1)]
    told = torch.stack([(queries * each).sum(-1) for each in own], dim=-1)  # [B, n, heads, step]
    scores = torch.cat([scores, told.transpose(1, 2)], dim=-1) * scale
    wide = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(-1, dtype=wide).to(values.dtype)
    found = torch.einsum("bhpk,bkhd->bphd", weights[..., :num], values)
    for at, (_, each) in enumerate(steps[1:], start=1):
        share = weights[..., num + at - 1].transpose(1, 2)[..., None]
        found = found + share * shifted(each, step - at)
    return found
