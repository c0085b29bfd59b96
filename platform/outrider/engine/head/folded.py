"""The head as it drafts: the numbers it is learnt with, in fewer and larger products.

A step over a few tokens costs its calls, not its arithmetic. So the weights of norms and the scale
of attention are folded into the products behind them, products of one input are one, and what
depends on a token or a position alone is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from outrider.engine.head.angles import Angles, turned
from outrider.engine.head.kv import HeadKV
from outrider.engine.head.module import DraftHead
from outrider.engine.head.product import MakeProduct, exact

RowKV = tuple[HeadKV, int]
"""A row's KV and how many of the flat tokens are its own."""


class FoldedHead:
    """One step is `step` (states in, states out), and `logits` where they are wanted.

    `embedding` [V, H]: the target's. All is computed in the type and on the device of `head`, and
    its products by what `product` makes of their weights.
    """

    def __init__(
        self, head: DraftHead, embedding: torch.Tensor, product: MakeProduct = exact
    ) -> None:
        layer, attention, mlp = head.layer, head.layer.self_attn, head.layer.mlp
        self.config = config = head.config
        self.d2t = head.d2t
        self.dtype, self.device = head.dtype, head.device
        queries = attention.q_proj.weight * config.head_dim**-0.5
        norms = torch.cat([layer.input_layernorm.weight, layer.hidden_norm.weight])
        projections = [queries, attention.k_proj.weight, attention.v_proj.weight]
        gates = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
        self._fused = product(head.fc.weight)
        self._projected = product(torch.cat(projections) * norms)
        self._attended = product(attention.o_proj.weight)
        self._gated = product(gates * layer.post_attention_layernorm.weight)
        self._widened = product(mlp.down_proj.weight)
        self._said = product(head.lm_head.weight * head.norm.weight)
        self._embedding = self._normed(embedding.to(self.device, self.dtype))
        self._angles = Angles(config.head_dim, config.rope_theta, self.dtype, self.device)

    def new_kv(self) -> HeadKV:
        """For a new row."""
        config = self.config
        return HeadKV(config.num_kv_heads, config.head_dim, self.dtype, self.device)

    def fuse(self, features: torch.Tensor) -> torch.Tensor:
        """The target's features [..., F] as states [..., H]."""
        return self._fused(features.to(device=self.device, dtype=self.dtype))

    def step(
        self,
        states: torch.Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        rows: Sequence[RowKV],
    ) -> torch.Tensor:
        """Read flat tokens of many rows: [n, H], n ids and n places to new states [n, H].

        At position i of a row stand the state of token i and token i + 1; what comes out tells
        token i + 2. Each row's KV grows by its tokens.
        """
        queries, keys, values = self._project(states, tokens, positions)
        attended, begin = [], 0
        for kv, count in rows:
            own = slice(begin, begin + count)
            kv.append(keys[own], values[own])
            attended.append(_attend(queries[own], kv))
            begin += count
        whole = attended[0] if len(attended) == 1 else torch.cat(attended)
        states = states + self._attended(whole.flatten(-2))
        gate, up = self._gated(self._normed(states)).chunk(2, dim=-1)
        return states + self._widened(F.silu(gate) * up)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """[n, H] to scores of the trimmed vocabulary [n, V_d]."""
        return self._said(self._normed(states))

    def _project(
        self, states: torch.Tensor, tokens: Sequence[int], positions: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values [n, heads, head_dim], turned."""
        config = self.config
        embeddings = self._embedding[torch.tensor(tokens, device=self.device)]
        inputs = torch.cat([embeddings, self._normed(states)], dim=-1)
        heads = self._projected(inputs).view(len(tokens), -1, config.head_dim)
        num_turned = config.num_heads + config.num_kv_heads
        moved = turned(heads[:, :num_turned], *self._angles.at(positions))
        queries, keys = moved[:, : config.num_heads], moved[:, config.num_heads :]
        return queries, keys, heads[:, num_turned:]

    def _normed(self, states: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(states, states.shape[-1:], eps=self.config.norm_eps)


def _attend(queries: torch.Tensor, kv: HeadKV) -> torch.Tensor:
    """[n, heads, head_dim] over a row's KV, of which the last n entries are the queries' own.

    Written out: torch's fused attention wakes all threads even for one query, which costs more
    than it gives at this size.
    """
    count, _, head_dim = queries.shape
    groups, length = kv.keys.shape[:2]
    # [groups, n * heads of a group, head_dim]: heads of a group share keys and values
    grouped = queries.reshape(count, groups, -1, head_dim).transpose(0, 1).flatten(1, 2)
    scores = grouped @ kv.keys.transpose(1, 2)
    if count > 1:
        scores = scores.view(groups, count, -1, length)
        device = queries.device
        newest = torch.arange(length - count, length, device=device)  # what each query may see
        future = torch.arange(length, device=device) > newest[:, None]  # [n, length]
        scores = scores.masked_fill(future[None, :, None], -math.inf).flatten(1, 2)
    exact = torch.promote_types(queries.dtype, torch.float32)
    attended = scores.softmax(-1, dtype=exact).to(queries.dtype) @ kv.values
    return attended.view(groups, count, -1, head_dim).transpose(0, 1).flatten(1, 2)
