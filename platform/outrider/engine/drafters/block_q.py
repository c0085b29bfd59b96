"""The distributions that a block was drawn from, as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def stacked_q(
    tokens: Sequence[int], qs: Sequence[torch.Tensor | None], vocab_size: int
) -> torch.Tensor | None:
    """[len(tokens), vocab] in float64, or None where every token was the only choice."""
    if all(q is None for q in qs):
        return None
    out = torch.zeros(len(tokens), vocab_size, dtype=torch.float64)
    for line, token, q in zip(out, tokens, qs, strict=True):
        if q is None:
            line[token] = 1.0
        else:
            line.copy_(q)
    return out
