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
"""Keys and values of a step, [B, n, heads, head_dim] each."""


def unrolled(
    head: DraftHead,
    features: torch.Tensor,
    embeddings: torch.Tensor,
    num_steps: int,
    begin: int = 0,
) -> Iterator[torch.Tensor]:
    """[B, n, F] and [B, n, H] (of the token behind each position) to states by step.

    States are [B, n - begin, H], from position `begin` on: those before are only looked at. Step j
    means something from position begin + j on.
    """
    positions = torch.arange(features.shape[1], device=features.device)
    # The residual stream stays as wide as the embeddings, also where products are short.
    states = head.fuse(features).to(embeddings.dtype)
    queries, *first = _projected(head, states, embeddings, positions)
    queries, states = queries[:, begin:], states[:, begin:]
    embeddings, positions = embeddings[:, begin:], positions[begin:]
    own: list[Keyed] = []
    for step in range(num_steps):
        if step:
            states = shifted(states, 1)
            queries, keys, values = _projected(head, states, embeddings, positions)
            own.append((keys, values))
        states = head.layer.finish(states, _attended(queries, (first[0], first[1]), own))
        yield states


def _projected(
    head: DraftHead, states: torch.Tensor, embeddings: torch.Tensor, positions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values of one type, with as many heads each."""
    queries, keys, values = head.layer.project(states, embeddings, positions)
    repeats = queries.shape[-2] // keys.shape[-2]
    keys, values = (each.repeat_interleave(repeats, -2) for each in (keys, values))
    return queries.to(values.dtype), keys.to(values.dtype), values


def shifted(tensor: torch.Tensor, by: int) -> torch.Tensor:
    """[B, n, ...] with what stood at p - `by` at p, zeros before."""
    if by == 0:
        return tensor
    filling = (0, 0) * (tensor.dim() - 2)
    return F.pad(tensor[:, : max(0, tensor.shape[1] - by)], (*filling, min(by, tensor.shape[1]), 0))


def _attended(queries: torch.Tensor, first: Keyed, own: list[Keyed]) -> torch.Tensor:
    """[B, m, heads, head_dim] of the last step over its past.

    `first`: the target's features, n positions of which the last m are the queries'. `own`: the
    draft's states of steps from 1 on, at the queries' positions.
    """
    (keys, values), step = first, len(own)
    num, length = queries.shape[1], keys.shape[1]
    ones = torch.ones(num, length, dtype=torch.bool, device=queries.device)
    seen = ones.tril(length - num - step)
    if not own:
        q, k, v = (each.transpose(1, 2) for each in (queries, keys, values))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2)
    scores = torch.einsum("bphd,bkhd->bhpk", queries, keys).masked_fill(~seen, -torch.inf)
    past = [tuple(shifted(each, step - at) for each in pair) for at, pair in enumerate(own, 1)]
    told = torch.stack([(queries * keys).sum(-1) for keys, _ in past], dim=-1)
    scores = torch.cat([scores, told.transpose(1, 2)], dim=-1) * queries.shape[-1] ** -0.5
    wide = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(-1, dtype=wide).to(values.dtype)
    found = torch.einsum("bhpk,bkhd->bphd", weights[..., :length], values)
    for at, (_, each) in enumerate(past):
        found = found + weights[..., length + at].transpose(1, 2)[..., None] * each
    return found
