"""To and from the layout of the `speculators` package (`speculators_model_type: eagle3`).

Tensors have the same names. Theirs are: `d2t` as offsets (id - index) beside a mask `t2d` of the
target's vocabulary, in order of id; the target's embeddings, at times; layers counted so that
layer i is what goes into the target's layer i.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from outrider.core import UserError
from outrider.engine.head.config import HeadConfig, Target
from outrider.engine.head.files import CONFIG, WEIGHTS, build, read_tensors
from outrider.engine.head.module import DraftHead

_NUM_FEATURES = 3  # layers that their `fc` fuses
_EMBEDDING = "embed_tokens.weight"
_ONLY = {  # what may stand there, where anything does
    "norm_before_residual": (False,),
    "norm_before_fc": (False,),
    "target_hidden_size": (None,),
}
_LAYER_ONLY = {
    "model_type": ("llama",),
    "num_hidden_layers": (1,),
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "rope_scaling": (None,),
}


def to_speculators(head: DraftHead, folder: Path, *, verifier: str) -> None:
    """Write the head as their package reads it. `verifier`: the target's name or path there."""
    if len(head.config.feature_layers) != _NUM_FEATURES:
        raise UserError(f"speculators: only heads that read {_NUM_FEATURES} layers can be written")
    folder.mkdir(parents=True, exist_ok=True)
    order = head.d2t.argsort()
    tensors = {name: tensor.contiguous().cpu() for name, tensor in head.state_dict().items()}
    ids = head.d2t[order].cpu()
    tensors["lm_head.weight"] = tensors["lm_head.weight"][order].contiguous()
    tensors["d2t"] = ids - torch.arange(len(ids))
    tensors["t2d"] = torch.isin(torch.arange(head.config.vocab_size), ids)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    told = _their_config(head.config, verifier)
    (folder / CONFIG).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def from_speculators(
    folder: Path, target: Target, *, embedding: torch.Tensor | None = None
) -> DraftHead:
    """Read theirs as a head of `target`. UserError names what has no place in ours.

    `embedding`: the target's [V, H]; where they bring one of their own it must be the same.
    """
    try:
        told = _json(folder / CONFIG)
        tensors = read_tensors(folder)
        _check_embedding(tensors.pop(_EMBEDDING, None), embedding)
        tensors.pop("t2d", None)  # `d2t` says the same
        if "d2t" not in tensors:
            raise UserError("it has no d2t: heads with the target's whole vocabulary are not read")
        config = _our_config(told, target)
        tensors["d2t"] = tensors["d2t"].long() + torch.arange(len(tensors["d2t"]))
        return build(config, tensors)
    except UserError as error:
        raise UserError(f"speculators: {folder}: {error}") from error


def _their_config(config: HeadConfig, verifier: str) -> dict[str, Any]:
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": config.draft_vocab_size,
        "norm_before_residual": False,
        "target_hidden_size": None,
        "eagle_aux_hidden_state_layer_ids": [layer + 1 for layer in config.feature_layers],
        "tie_word_embeddings": False,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}],
            "verifier": {"name_or_path": verifier, "architectures": []},
        },
        "transformer_layer_config": {
            "model_type": "llama",
            "vocab_size": config.vocab_size,
            "hidden_size": config.hidden_size,
            "intermediate_size": config.intermediate_size,
            "num_hidden_layers": 1,
            "num_attention_heads": config.num_heads,
            "num_key_value_heads": config.num_kv_heads,
            "head_dim": config.head_dim,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "rms_norm_eps": config.norm_eps,
            "rope_theta": config.rope_theta,
        },
    }


def _our_config(told: Mapping[str, Any], target: Target) -> HeadConfig:
    if told.get("speculators_model_type") != "eagle3":
        raise UserError(f"speculators_model_type {told.get('speculators_model_type')} is not read")
    layer = told.get("transformer_layer_config", {})
    _refuse_other(told, _ONLY)
    _refuse_other(layer, _LAYER_ONLY)
    try:
        heads = int(layer["num_attention_heads"])
        return HeadConfig(
            target_weights=target.weights_digest,
            target_tokenizer=target.tokenizer_digest,
            vocab_size=layer["vocab_size"],
            draft_vocab_size=told["draft_vocab_size"],
            hidden_size=layer["hidden_size"],
            intermediate_size=layer["intermediate_size"],
            num_heads=heads,
            num_kv_heads=layer.get("num_key_value_heads", heads),
            head_dim=layer.get("head_dim") or layer["hidden_size"] // heads,
            feature_layers=_our_layers(told.get("eagle_aux_hidden_state_layer_ids")),
            rope_theta=_theta(layer),
            norm_eps=layer.get("rms_norm_eps", 1e-6),
            provenance={"converted_from": "speculators eagle3"},
        )
    except KeyError as error:
        raise UserError(f"{CONFIG} lacks {error.args[0]}") from error


def _our_layers(ids: Any) -> tuple[int, ...]:
    key = "eagle_aux_hidden_state_layer_ids"
    if not isinstance(ids, list) or not ids:
        raise UserError(f"{key} is missing: nobody knows which layers it reads")
    if min(ids) < 1:
        raise UserError(f"{key} {ids}: the embeddings (0) are no layer's output")
    return tuple(int(each) - 1 for each in ids)


def _theta(layer: Mapping[str, Any]) -> float:
    parameters = layer.get("rope_parameters") or {}
    kind = parameters.get("rope_type", "default")
    if kind != "default":
        raise UserError(f"rope_type {kind} is not read")
    return float(parameters.get("rope_theta", layer.get("rope_theta", 10_000.0)))


def _refuse_other(told: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]]) -> None:
    for key, allowed in only.items():
        if key in told and told[key] not in allowed:
            raise UserError(f"{key} {told[key]} is not read, only {allowed[0]}")


def _check_embedding(theirs: torch.Tensor | None, target: torch.Tensor | None) -> None:
    if theirs is None:
        return
    if target is None:
        raise UserError(f"{_EMBEDDING} is in it: the target's are needed, to compare")
    if theirs.shape != target.shape or not torch.equal(theirs.to(target.dtype), target):
        raise UserError(f"{_EMBEDDING} is not the target's: a head has the target's own")


def _json(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"no readable {CONFIG} in it") from error
    if not isinstance(told, dict):
        raise UserError(f"{CONFIG} is not a JSON object")
    return told
