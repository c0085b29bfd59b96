"""A head before it has learnt: the target's last layer, or random weights of the same sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from outrider.config.schema import HeadInit
from outrider.core import UserError
from outrider.engine.head import DraftHead, HeadConfig
from outrider.models import ModelFiles

DEVIATION = 0.02  # of random weights, as Llama's own
COPIED = (
    "self_attn.o_proj.weight",
    "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)
WIDENED = ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight")


def config_of(
    model: Any, target: ModelFiles, layers: Sequence[int], vocabulary: Sequence[int]
) -> HeadConfig:
    """Sizes are those of a layer of the target. `model`: its Hugging Face configuration."""
    heads = model.num_attention_heads
    width = getattr(model, "intermediate_size", None) or 4 * model.hidden_size
    ropes = getattr(model, "rope_parameters", None) or {}
    return HeadConfig(
        target_weights=target.weights_digest,
        target_tokenizer=target.tokenizer_digest,
        vocab_size=model.vocab_size,
        draft_vocab_size=len(vocabulary),
        hidden_size=model.hidden_size,
        intermediate_size=width,
        num_heads=heads,
        num_kv_heads=getattr(model, "num_key_value_heads", None) or heads,
        head_dim=getattr(model, "head_dim", None) or model.hidden_size // heads,
        feature_layers=tuple(layers),
        rope_theta=float(ropes.get("rope_theta", 10_000.0)),
        norm_eps=float(getattr(model, "rms_norm_eps", 1e-5)),
    )


def new_head(
    config: HeadConfig, vocabulary: Sequence[int], folder: Path, *, init: HeadInit, seed: int
) -> DraftHead:
    """In float32. `folder`: the target's. UserError where init=target can't be had of it."""
    head = DraftHead(config, torch.tensor(vocabulary))
    _randomise(head, seed)
    if init is HeadInit.TARGET:
        _copy_target(head, _tensors(folder))
    return head


def _randomise(head: DraftHead, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in head.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, DEVIATION, generator=random)


def _copy_target(head: DraftHead, target: Mapping[str, torch.Tensor]) -> None:
    """The last layer reads the last of the features as it did in the target; the embeddings are
    heard from the first update on.
    """
    hidden = head.config.hidden_size
    last = max(_layer_of(name) for name in target)
    prefix = next((n for n in target if _layer_of(n) == last), "").partition(f"layers.{last}.")[0]
    layer = {
        name.partition(f"layers.{last}.")[2]: tensor
        for name, tensor in target.items()
        if _layer_of(name) == last
    }
    own = head.layer.state_dict()
    try:
        with torch.no_grad():
            for name in COPIED:
                own[name].copy_(layer[name])
            for name in WIDENED:
                own[name][:, hidden:] = layer[name]
            own["hidden_norm.weight"].copy_(layer["input_layernorm.weight"])
            head.norm.weight.copy_(target[f"{prefix}norm.weight"])
            embedding = target[f"{prefix}embed_tokens.weight"]
            head.lm_head.weight.copy_(target.get("lm_head.weight", embedding)[head.d2t])
            head.fc.weight[:, -hidden:] += torch.eye(hidden)
    except (KeyError, RuntimeError) as error:
        raise UserError(
            f"distill.init=target: the target's last layer is not as a head's ({error}): "
            "give init=random"
        ) from error


def _layer_of(name: str) -> int:
    """Number of the decoder layer that a tensor belongs to; -1: none."""
    _, found, rest = name.partition("layers.")
    number = rest.partition(".")[0]
    return int(number) if found and number.isdigit() else -1


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                found[name] = file.get_tensor(name).float()
    return found
