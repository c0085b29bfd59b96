"""The one thing the engine asks of a model: score new tokens of many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch


@dataclass(frozen=True, slots=True)
class RowSlice:
    """New tokens of one row, to be computed behind the `past_length` tokens already in its KV."""

    tokens: Sequence[int]  # [n], n >= 1
    past_length: int  # tokens of this row whose KV is valid; anything behind is overwritten
    blocks: Sequence[int]  # block ids, in order; len(blocks) * block_size >= past_length + n
    num_logits: (
        int  # logits are wanted for the last `num_logits` of `tokens`; 0 for a prefill chunk
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What the engine must know about a loaded model."""

    vocab_size: int  # width of a logits row; may be padded beyond the tokenizer
    context_length: int  # most tokens a row may hold
    num_blocks: int  # KV blocks in the pool
    block_size: int  # tokens in a block


class RoundSizes(Protocol):
    """The sizes that rounds are computed in: what a size costs is for the cost model to learn."""

    def rounded(self, num_tokens: int) -> int:
        """Tokens that a round of `num_tokens` costs as: some models compute in coarser sizes."""
        ...

    def is_prepared(self, num_tokens: int) -> bool:
        """False where the next round, if of `num_tokens`, would make the model prepare first."""
        ...


class ExactSizes:
    """Every size is computed as it is, and none needs preparation."""

    def rounded(self, num_tokens: int) -> int:
        return num_tokens

    def is_prepared(self, num_tokens: int) -> bool:
        return True


class LanguageModel(RoundSizes, Protocol):
    """A decoder-only model with a paged KV cache of its own.

    The caller owns the block ids; the model owns the memory behind them. Rolling back is passing
    a smaller `past_length`. Rows are strangers: a row's logits do not depend on its neighbours.
    """

    @property
    def shape(self) -> ModelShape: ...

    @property
    def identity(self) -> dict[str, str]:
        """Runtime, device, dtype, weights digest: what a cost table is keyed by."""
        ...

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        """Return logits [sum of num_logits, vocab_size], rows in order, positions in order.

        The tensor may be reused by the next call: copy what must outlive it.
        """
        ...


@runtime_checkable
class FeatureModel(LanguageModel, Protocol):
    """A model that also shows what some of its layers made of the tokens: drafts are made of it.

    A feature is the outputs of the layers `feature_layers` at one token, side by side. Layer i is
    the i-th decoder layer from 0, and its output the residual stream behind it: the last one's is
    not normalised yet. Empty `feature_layers`: it was opened without.
    """

    @property
    def feature_layers(self) -> tuple[int, ...]: ...

    @property
    def feature_size(self) -> int:
        """Width of a feature: number of layers * hidden size."""
        ...

    @property
    def features(self) -> torch.Tensor:
        """[T, feature_size] float32: of all tokens of the last forward, rows in order.

        The tensor may be reused by the next forward: copy what must outlive it.
        """
        ...
