"""The head's step without its attention: what stands before it, and what stands behind it.

Each is a module of plain tensors, so that a runtime can compile it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import nn

from outrider.engine.head.module import DraftHead

Stage: TypeAlias = Callable[..., Sequence[torch.Tensor]]
"""A module's forward. Its results are the caller's."""

Compile: TypeAlias = Callable[[nn.Module, Sequence[torch.Tensor]], Stage]
"""(module, inputs as it will meet them: only their first sizes differ) -> the same, faster."""


def as_it_is(module: nn.Module, example: Sequence[torch.Tensor]) -> Stage:
    return module


class Going(nn.Module):
    """States [n, H], embeddings [n, H] and places [n] to the states, to queries [n, heads,
    head_dim] turned and scaled, and to an entry of the KV [n, 2 * KV heads, head_dim]."""

    def __init__(self, head: DraftHead) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, states: torch.Tensor, embeddings: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        queries, keys, values = self.head.layer.project(states, embeddings, positions)
        scaled = queries * queries.shape[-1] ** -0.5
        return states, scaled, torch.cat([keys, values], dim=-2)


class Entering(Going):
    """As `Going`, from the target's features [n, F]."""

    def forward(
        self, features: torch.Tensor, embeddings: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return super().forward(self.head.fuse(features), embeddings, positions)


class Leaving(nn.Module):
    """States [n, H] and what attention gave [n, heads, head_dim] to the layer's own states [n, H],
    scores of the trimmed vocabulary [n, V_d], and the probability of the likeliest token [n]."""

    def __init__(self, head: DraftHead) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, states: torch.Tensor, attended: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        states = self.head.layer.finish(states, attended)
        logits = self.head.logits(states)
        return states, logits, logits.softmax(dim=-1).amax(dim=-1)
