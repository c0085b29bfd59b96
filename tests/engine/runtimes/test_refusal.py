"""A model that can't be run exactly is refused by name at load, not served wrongly."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from outrider.core import UserError
from outrider.engine.runtimes.refusal import refuse_inexact
from outrider.engine.runtimes.torch_runtime import TorchModel

REFUSED = [
    ("mistral", transformers.MistralConfig, {"sliding_window": 32}, "slides over 32 tokens of 128"),
    (
        "qwen2",
        transformers.Qwen2Config,
        {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1},
        "slides over 16 tokens",
    ),
    ("gemma2", transformers.Gemma2Config, {"sliding_window": 128}, "caps attention logits"),
    ("mamba", transformers.MambaConfig, {}, "linear_attention layers"),
    ("t5", transformers.T5Config, {}, "encoder-decoder"),
    ("gpt2", transformers.GPT2Config, {"add_cross_attention": True}, "cross-attention"),
    ("clip_vision_model", transformers.CLIPVisionConfig, {}, "no causal language model"),
    (
        "llama",
        transformers.LlamaConfig,
        {
            "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4},
            "max_position_embeddings": 64,
        },
        "dynamic rotary embedding changes beyond 64 tokens",
    ),
]
# What a config doesn't tell shows when the model is run on two tokens.
ODD = [
    (transformers.BloomConfig, {}, "bloom .* takes no position_ids"),
    (
        transformers.GptOssConfig,
        {"head_dim": 16, "layer_types": ["full_attention"] * 2, "num_local_experts": 2},
        "gpt_oss .* takes s_aux",
    ),
]


@pytest.mark.parametrize(("name", "kind", "changes", "reason"), REFUSED)
def test_a_config_that_shows_it_is_refused_by_name(
    tiny: Any, name: str, kind: type, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=f"model type {name} can't be run exactly: .*{reason}"):
        refuse_inexact(tiny.of(kind, **changes), 128)


@pytest.mark.parametrize(("kind", "changes", "reason"), ODD)
def test_a_model_whose_attention_is_not_ordinary_is_refused_by_name(
    tiny: Any, kind: type, changes: dict[str, Any], reason: str
) -> None:
    module = tiny.module(tiny.of(kind, **changes))
    with pytest.raises(UserError, match=reason):
        TorchModel(module, num_blocks=4, block_size=8, context_length=128, num_threads=1, digest="")


def test_a_window_as_long_as_the_context_is_no_window(tiny: Any) -> None:
    refuse_inexact(tiny.config("mistral", sliding_window=32), 32)
    with pytest.raises(UserError, match="set max_context_length to 32 or less"):
        refuse_inexact(tiny.config("mistral", sliding_window=32), 33)
