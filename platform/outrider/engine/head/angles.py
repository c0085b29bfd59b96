"""Rotary position embedding (Su et al. 2021, arXiv 2104.09864, eq. 34), halves apart."""

from __future__ import annotations

import torch


def angles(
    positions: torch.Tensor, head_dim: int, theta: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """[n] to cosines and sines [n, 1, head_dim]; the first half of the sines is negated."""
    halves = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32)
    half = (positions[..., None].float() * theta ** (-halves / head_dim)).unsqueeze(-2)
    cos, sin = half.cos().to(dtype), half.sin().to(dtype)
    return torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)


def turned(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[n, heads, head_dim] by what `angles` gave."""
    first, second = vectors.chunk(2, dim=-1)
    return vectors * cos + torch.cat([second, first], dim=-1) * sin
