"""Tiny random models of several families, made in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

_SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,  # large enough that a wrong mask or position shows
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_FAMILIES: dict[str, tuple[type, dict[str, Any]]] = {
    "llama-gqa": (transformers.LlamaConfig, {"num_key_value_heads": 2}),
    "llama-tied": (transformers.LlamaConfig, {"tie_word_embeddings": True}),
    "qwen2": (transformers.Qwen2Config, {"num_key_value_heads": 2}),
    "qwen3": (transformers.Qwen3Config, {"num_key_value_heads": 1, "head_dim": 32}),
    "mistral": (transformers.MistralConfig, {"num_key_value_heads": 2, "sliding_window": None}),
    "gpt-neox": (transformers.GPTNeoXConfig, {}),
    "gpt2": (transformers.GPT2Config, {}),
    "granite": (  # scales its logits and its attention
        transformers.GraniteConfig,
        {"attention_multiplier": 0.1, "logits_scaling": 3.0, "num_key_value_heads": 2},
    ),
    "mixtral": (transformers.MixtralConfig, {"num_hidden_layers": 1, "num_local_experts": 2}),
}


class TinyModels:
    """Makes configs, modules and token ids."""

    vocab_size = _SIZES["vocab_size"]
    context_length = _SIZES["max_position_embeddings"]

    def config(self, family: str, **changes: Any) -> Any:
        kind, particular = _FAMILIES[family]
        return kind(**{**_SIZES, **particular, **changes})

    def of(self, kind: type, **changes: Any) -> Any:
        return kind(**{**_SIZES, **changes})

    def module(self, config: Any, dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
        torch.manual_seed(seed)
        return transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()

    def tokens(self, length: int, seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        ids: list[int] = torch.randint(self.vocab_size, (length,), generator=generator).tolist()
        return ids


@pytest.fixture(scope="session")
def tiny() -> TinyModels:
    return TinyModels()
