"""The head as it drafts: stages that a runtime has compiled, and each row's attention between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from outrider.engine.head.kv import HeadKV
from outrider.engine.head.module import DraftHead
from outrider.engine.head.stages import Compile, Entering, Going, Leaving, Stage, as_it_is

RowKV = tuple[HeadKV, int]
"""A row's KV and how many of the flat tokens are its own."""


class Told(NamedTuple):
    """What the head makes of each row's last token."""

    states: torch.Tensor  # [rows, H]
    logits: torch.Tensor  # [rows, V_d] scores of the trimmed vocabulary
    tops: list[float]  # [rows] probability of the likeliest; NaN where a score is NaN or infinite


class CompiledHead:
    """`embedding` [V, H] is the target's. All is in the type and on the device of `head`.

    Both steps read flat tokens of many rows, n ids at n places, and tell of each row's last one. At
    position i of a row stand the state of token i and the embedding of token i + 1; what comes out
    tells token i + 2. Each row's KV grows by its tokens.
    """

    def __init__(
        self, head: DraftHead, embedding: torch.Tensor, compiled: Compile = as_it_is
    ) -> None:
        self.config = config = head.config
        self.d2t = head.d2t
        self.dtype, self.device = head.dtype, head.device
        self._embedding = embedding.to(self.device, self.dtype)
        features, states = self._zeros(config.feature_size), self._zeros(config.hidden_size)
        places = torch.zeros(2, dtype=torch.int64, device=self.device)
        self._enter = compiled(Entering(head), (features, states, places))
        self._go = compiled(Going(head), (states, states, places))
        self._leave = compiled(
            Leaving(head), (states, self._zeros(config.num_heads, config.head_dim))
        )

    def new_kv(self) -> HeadKV:
        """For a new row."""
        config = self.config
        return HeadKV(config.num_kv_heads, config.head_dim, self.dtype, self.device)

    def read(
        self,
        features: torch.Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        rows: Sequence[RowKV],
    ) -> Told:
        """A step from the target's features [n, F]."""
        features = features.to(device=self.device, dtype=self.dtype)
        return self._step(self._enter, features, tokens, positions, rows)

    def step(
        self,
        states: torch.Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        rows: Sequence[RowKV],
    ) -> Told:
        """A step from the head's own states [n, H]."""
        return self._step(self._go, states, tokens, positions, rows)

    def _step(
        self,
        stage: Stage,
        source: torch.Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        rows: Sequence[RowKV],
    ) -> Told:
        embeddings = self._embedding[torch.tensor(tokens, device=self.device)]
        places = torch.tensor(positions, device=self.device)
        states, queries, entries = stage(source, embeddings, places)
        attended, lasts, end = [], [], 0
        for kv, count in rows:
            kv.append(entries[end : end + count])
            end += count
            attended.append(_attend(queries[end - 1], kv.entries))
            lasts.append(end - 1)
        last_states = states if len(lasts) == end else states[lasts]
        states, logits, tops = self._leave(last_states, torch.stack(attended))
        return Told(states, logits, tops.tolist())

    def _zeros(self, *sizes: int) -> torch.Tensor:
        return torch.zeros(2, *sizes, dtype=self.dtype, device=self.device)


def _attend(query: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
    """[heads, head_dim], scaled, over a row's [length, 2 * KV heads, head_dim], its own the last.

    Written out: torch's fused attention wakes all threads even for one query, which costs more
    than it gives at this size.
    """
    keys, values = entries.transpose(0, 1).chunk(2)  # [KV heads, length, head_dim]
    grouped = query.view(len(keys), -1, query.shape[-1])
    scores = torch.bmm(grouped, keys.transpose(1, 2))
    exact = torch.promote_types(query.dtype, torch.float32)
    weights = scores.softmax(-1, dtype=exact).to(query.dtype)
    return torch.bmm(weights, values).view_as(query)
