"""Paged keys and values as torch tensors, and causal attention over them row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from outrider.engine.language_model import RowSlice
from outrider.engine.runtimes.attention_layers import AttentionLayer


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Where one row's tokens stand in the flat batch and in the cache."""

    begin: int
    end: int  # flat positions [begin, end)
    slots: torch.Tensor  # [length] slot of each of the row's tokens, old and new
    mask: torch.Tensor | None  # [n, length], True where a new token may look; None: all or causal
    is_causal: bool


class PagedCache:
    """KV memory of all layers. A slot is `block * block_size + offset`."""

    def __init__(
        self,
        layers: Sequence[AttentionLayer],
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        def allocate(layer: AttentionLayer, size: int) -> torch.Tensor:
            num_slots = num_blocks * block_size
            return torch.zeros(num_slots, layer.num_heads, size, dtype=dtype, device=device)

        self._block_size = block_size
        self._device = device
        self._keys = [allocate(layer, layer.key_size) for layer in layers]  # [slots, Hk, D]
        self._values = [allocate(layer, layer.value_size) for layer in layers]  # [slots, Hk, Dv]
        self._spans: list[RowSpan] = []
        self._new_slots = torch.empty(0, dtype=torch.int64, device=device)  # [T]

    def point_at(self, rows: Sequence[RowSlice]) -> None:
        """Say which rows the next forward is for."""
        self._spans = []
        begin = 0
        for row in rows:
            self._spans.append(self._span(row, begin))
            begin = self._spans[-1].end
        self._new_slots = torch.cat([span.slots[span.begin - span.end :] for span in self._spans])

    def _span(self, row: RowSlice, begin: int) -> RowSpan:
        num_new = len(row.tokens)
        length = row.past_length + num_new
        blocks = torch.as_tensor(row.blocks, dtype=torch.int64, device=self._device)
        offsets = torch.arange(self._block_size, device=self._device)
        slots = (blocks[:, None] * self._block_size + offsets).flatten()[:length]
        mask = None
        if num_new > 1 and row.past_length > 0:
            # sdpa's own causal mask starts at the first key, not behind the past
            everything = torch.ones(num_new, length, dtype=torch.bool, device=self._device)
            mask = everything.tril(row.past_length)
        is_causal = num_new > 1 and row.past_length == 0
        return RowSpan(begin, begin + num_new, slots, mask, is_causal)

    def attend(
        self,
        layer: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float | None = None,
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        """Store k and v [1, Hk, T, D], and attend with q [1, Hq, T, D]. Returns [1, T, Hq, Dv]."""
        keys, values = self._keys[layer.layer_idx], self._values[layer.layer_idx]
        keys[self._new_slots] = k[0].transpose(0, 1)
        values[self._new_slots] = v[0].transpose(0, 1)
        outputs = [
            F.scaled_dot_product_attention(
                q[:, :, span.begin : span.end],
                keys[span.slots].transpose(0, 1)[None],
                values[span.slots].transpose(0, 1)[None],
                attn_mask=span.mask,
                is_causal=span.is_causal,
                scale=scaling,
                enable_gqa=q.shape[1] != k.shape[1],
            )
            for span in self._spans
        ]
        return torch.cat(outputs, dim=2).transpose(1, 2).contiguous(), None
