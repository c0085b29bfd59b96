"""The reference runtime: a Hugging Face module as it is, with our cache and our attention."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface

from outrider.engine.language_model import ExactSizes, ModelShape, RowSlice
from outrider.engine.runtimes.attention_layers import attention_layers
from outrider.engine.runtimes.layer_tap import LayerTap, features_named
from outrider.engine.runtimes.loading import own_config
from outrider.engine.runtimes.paged_cache import PagedCache
from outrider.engine.runtimes.refusal import refusal, refuse_inexact
from outrider.engine.runtimes.rows import check_ids, check_rows


class TorchModel(ExactSizes):
    """A `FeatureModel` on any device and dtype. It takes the module over: don't use it elsewhere.

    Raises UserError where the module's attention is not ordinary causal attention.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        num_blocks: int,
        block_size: int,
        context_length: int,
        num_threads: int,
        digest: str,
        feature_layers: tuple[int, ...] = (),
    ) -> None:
        # Any: PreTrainedModel's call is not typed
        self._module: Any = module.eval()
        config = own_config(module)
        refuse_inexact(config, context_length)
        _require_arguments(self._module)
        layers = attention_layers(module, context_length)
        first = next(module.parameters())
        self._device = first.device
        self._cache = PagedCache(layers, num_blocks, block_size, first.dtype, first.device)
        self._take_over_attention(config)
        self._feature_layers = feature_layers
        self._tap = LayerTap(module, feature_layers) if feature_layers else None
        self._num_threads = num_threads
        self._shape = ModelShape(
            vocab_size=_head_width(self._module),
            context_length=context_length,
            num_blocks=num_blocks,
            block_size=block_size,
        )
        self._identity = {
            "runtime": f"torch {torch.__version__}",
            "device": str(first.device),
            "dtype": str(first.dtype).removeprefix("torch."),
            "num_threads": str(num_threads),
            "weights": digest,
            **features_named(feature_layers),
        }

    def _take_over_attention(self, config: Any) -> None:
        # The name is this instance's own, so that models in one process don't meet.
        name = f"outrider-{id(self):x}"
        AttentionInterface.register(name, self._cache.attend)
        weakref.finalize(self, AttentionInterface._global_mapping.pop, name, None)
        config._attn_implementation = name

    @property
    def shape(self) -> ModelShape:
        return self._shape

    @property
    def identity(self) -> dict[str, str]:
        return dict(self._identity)

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._feature_layers

    @property
    def feature_size(self) -> int:
        return 0 if self._tap is None else self._tap.size

    @property
    def features(self) -> torch.Tensor:
        """See `FeatureModel.features`."""
        if self._tap is None:
            return torch.empty(0, 0)
        return self._tap.features().float()

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        """See `LanguageModel.forward`. ValueError where a row breaks its contract."""
        check_rows(rows, self._shape)
        tokens, positions, wanted = _flatten(rows)
        check_ids("token id", min(tokens), max(tokens), self._shape.vocab_size)
        blocks = [block for row in rows for block in row.blocks]
        check_ids("block id", min(blocks), max(blocks), self._shape.num_blocks)
        if self._device.type == "cpu" and torch.get_num_threads() != self._num_threads:
            torch.set_num_threads(self._num_threads)
        with torch.inference_mode():
            self._cache.point_at(rows)
            logits = self._module(
                input_ids=self._tensor(tokens)[None],
                position_ids=self._tensor(positions)[None],
                use_cache=False,
                logits_to_keep=self._tensor(wanted),
            ).logits[0]
        result: torch.Tensor = logits
        return result

    def _tensor(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self._device)


def _flatten(rows: Sequence[RowSlice]) -> tuple[list[int], list[int], list[int]]:
    """Return tokens [T], positions [T] and the flat indices [L] whose logits are wanted."""
    tokens: list[int] = []
    positions: list[int] = []
    wanted: list[int] = []
    for row in rows:
        tokens.extend(row.tokens)
        positions.extend(range(row.past_length, row.past_length + len(row.tokens)))
        wanted.extend(range(len(tokens) - row.num_logits, len(tokens)))
    return tokens, positions, wanted


def _require_arguments(module: Any) -> None:
    accepted = inspect.signature(module.forward).parameters
    for name in ("input_ids", "position_ids", "logits_to_keep"):
        if name not in accepted:
            raise refusal(module.config, f"its forward takes no {name}")


def _head_width(module: Any) -> int:
    return int(module.get_output_embeddings().weight.shape[0])
