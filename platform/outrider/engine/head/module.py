"""The head itself, with the tensors' names that the `speculators` package gives them.

EAGLE-3 (arXiv 2503.01840, section 3): `fc` fuses the outputs g = [l; m; h] of several of the
target's layers into one vector; one decoder layer reads it beside the embedding of the token that
follows; the next step reads the layer's own output where the target's features are not known yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from outrider.engine.head.config import HeadConfig
from outrider.engine.head.kv import HeadKV

RowKV = tuple[HeadKV, int]
"""A row's KV and how many of the flat tokens are its own."""


class _Attention(nn.Module):
    """Projections only; queries, keys and values read [embedding; features], 2H wide."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        hidden, head_dim = config.hidden_size, config.head_dim
        self.q_proj = nn.Linear(2 * hidden, config.num_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(2 * hidden, config.num_kv_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(2 * hidden, config.num_kv_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_heads * head_dim, hidden, bias=False)


class _Mlp(nn.Module):
    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        inner = F.silu(self.gate_proj(states)) * self.up_proj(states)
        out: torch.Tensor = self.down_proj(inner)
        return out


class HeadLayer(nn.Module):
    """The decoder layer, but for the attention itself: that is the caller's, who has the past."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn = _Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = _Mlp(config)
        self._head_dim = config.head_dim
        self._theta = config.rope_theta

    def project(
        self, states: torch.Tensor, embeddings: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """[..., H] each and [...] to queries, keys, values [..., heads, head_dim], turned."""
        both = [self.input_layernorm(embeddings), self.hidden_norm(states)]
        inputs, attention = torch.cat(both, dim=-1), self.self_attn
        queries, keys, values = (
            projection(inputs).unflatten(-1, (-1, self._head_dim))
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        cos, sin = self._angles(positions, inputs.dtype)
        return _turned(queries, cos, sin), _turned(keys, cos, sin), values

    def finish(self, states: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """The layer's output [..., H], given what attention gave [..., heads, head_dim]."""
        states = states + self.self_attn.o_proj(attended.flatten(-2))
        out: torch.Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return out

    def _angles(
        self, positions: torch.Tensor, dtype: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [..., 1, head_dim] (Su et al. 2021, eq. 34, halves apart)."""
        halves = torch.arange(0, self._head_dim, 2, device=positions.device, dtype=torch.float32)
        angles = positions[..., None].float() * self._theta ** (-halves / self._head_dim)
        angles = torch.cat([angles, angles], dim=-1).unsqueeze(-2)
        return angles.cos().to(dtype), angles.sin().to(dtype)


class DraftHead(nn.Module):
    """One step is `step` (states in, states out), and `logits` where they are wanted."""

    d2t: torch.Tensor  # [V_d] int64: the target's ids of what the head can say

    def __init__(self, config: HeadConfig, d2t: torch.Tensor) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(config.feature_size, config.hidden_size, bias=False)
        self.layers = nn.ModuleList([HeadLayer(config)])
        self.norm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.draft_vocab_size, bias=False)
        self.register_buffer("d2t", d2t.long())

    @property
    def layer(self) -> HeadLayer:
        layer = self.layers[0]
        assert isinstance(layer, HeadLayer)
        return layer

    @property
    def dtype(self) -> torch.dtype:
        return self.fc.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.fc.weight.device

    def new_kv(self) -> HeadKV:
        """For a new row."""
        config = self.config
        return HeadKV(config.num_kv_heads, config.head_dim, self.dtype, self.device)

    def fuse(self, features: torch.Tensor) -> torch.Tensor:
        """The target's features [..., F] as states [..., H]."""
        fused: torch.Tensor = self.fc(features)
        return fused

    def step(
        self,
        states: torch.Tensor,
        embeddings: torch.Tensor,
        positions: torch.Tensor,
        rows: Sequence[RowKV],
    ) -> torch.Tensor:
        """Read flat tokens of many rows: [n, H], [n, H] and [n] to new states [n, H].

        At position i of a row stand the state of token i and the embedding of token i + 1; what
        comes out tells token i + 2. Each row's KV grows by its tokens.
        """
        queries, keys, values = self.layer.project(states, embeddings, positions)
        attended, begin = [], 0
        for kv, count in rows:
            own = slice(begin, begin + count)
            kv.append(keys[own], values[own])
            attended.append(_attend(queries[own], kv))
            begin += count
        return self.layer.finish(states, torch.cat(attended))

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """[..., H] to scores of the trimmed vocabulary [..., V_d]."""
        scores: torch.Tensor = self.lm_head(self.norm(states))
        return scores


def _attend(queries: torch.Tensor, kv: HeadKV) -> torch.Tensor:
    """[n, heads, head_dim] over a row's KV, of which the last n entries are the queries' own.

    Written out: torch's fused attention wakes all threads even for one query, which costs more
    than it gives at this size.
    """
    count, _, head_dim = queries.shape
    groups, length = kv.keys.shape[:2]
    # [groups, n * heads of a group, head_dim]: heads of a group share keys and values
    grouped = queries.view(count, groups, -1, head_dim).transpose(0, 1).flatten(1, 2)
    scores = grouped @ kv.keys.transpose(1, 2) * head_dim**-0.5
    scores = scores.view(groups, count, -1, length)
    if count > 1:
        device = queries.device
        newest = torch.arange(length - count, length, device=device)  # what each query may see
        future = torch.arange(length, device=device) > newest[:, None]  # [n, length]
        scores = scores.masked_fill(future[None, :, None], -math.inf)
    exact = torch.promote_types(queries.dtype, torch.float32)
    weights = scores.softmax(-1, dtype=exact).to(queries.dtype)
    attended = weights.flatten(1, 2) @ kv.values
    return attended.view(groups, count, -1, head_dim).transpose(0, 1).flatten(1, 2)


def _turned(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = vectors.chunk(2, dim=-1)
    return vectors * cos + torch.cat([-second, first], dim=-1) * sin
