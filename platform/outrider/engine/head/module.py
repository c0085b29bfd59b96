"""The head itself, with the tensors' names that the `speculators` package gives them.

EAGLE-3 (arXiv 2503.01840, section 3): `fc` fuses the outputs g = [l; m; h] of several of the
target's layers into one vector; one decoder layer reads it beside the embedding of the token that
follows; the next step reads the layer's own output where the target's features are not known yet.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from outrider.engine.head.angles import angles, turned
from outrider.engine.head.config import HeadConfig


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
        cos, sin = angles(positions, self._head_dim, self._theta, inputs.dtype)
        return turned(queries, cos, sin), turned(keys, cos, sin), values

    def finish(self, states: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """The layer's output [..., H], given what attention gave [..., heads, head_dim]."""
        states = states + self.self_attn.o_proj(attended.flatten(-2))
        out: torch.Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return out


class DraftHead(nn.Module):
    """What is learnt and kept; `CompiledHead` drafts with it."""

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

    def fuse(self, features: torch.Tensor) -> torch.Tensor:
        """The target's features [..., F] as states [..., H]."""
        fused: torch.Tensor = self.fc(features)
        return fused

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """[..., H] to scores of the trimmed vocabulary [..., V_d]."""
        scores: torch.Tensor = self.lm_head(self.norm(states))
        return scores
