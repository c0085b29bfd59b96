"""Which models can't be run exactly here, and why: refused by name at load, not served wrongly."""

from __future__ import annotations

from typing import Any

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from outrider.core import UserError

# Rotary embeddings whose angles depend on how long the *batch* is: rows would not be strangers.
_LENGTH_DEPENDENT_ROPE = frozenset({"dynamic", "longrope"})


def refuse_inexact(config: Any, context_length: int) -> None:
    """Raise UserError naming the model type and the reason, where its config shows one."""
    for reason in (
        _family(config),
        _layers(config, context_length),
        _attention(config),
        _rope(config, context_length),
    ):
        if reason:
            raise refusal(config, reason)


def refuse_unconvertible(config: Any) -> None:
    """Raise UserError where tracing would freeze what depends on the tokens."""
    counts = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    if any((getattr(config, name, None) or 0) > 1 for name in counts):
        raise refusal(config, "OpenVINO can't convert its expert layers")


def refusal(config: Any, reason: str) -> UserError:
    return UserError(f"model type {config.model_type} can't be run exactly: {reason}")


def _family(config: Any) -> str:
    if getattr(config, "is_encoder_decoder", False):
        return "it is an encoder-decoder"
    if getattr(config, "add_cross_attention", False):
        return "it has cross-attention"
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "transformers knows no causal language model of this type"
    if not getattr(config, "is_causal", True):
        return "its attention is not causal"
    if getattr(config, "quantization_config", None):
        return "its weights are quantised; give the unquantised ones"
    return ""


def _layers(config: Any, context_length: int) -> str:
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        return _window(window, context_length)
    for name in dict.fromkeys(types):
        if name == "sliding_attention":
            if reason := _window(window, context_length):
                return reason
        elif name != "full_attention":
            return f"it has {name} layers"
    return ""


def _window(window: int | None, context_length: int) -> str:
    if window is None or window >= context_length:
        return ""
    return (
        f"its attention slides over {window} tokens of {context_length}; "
        f"set max_context_length to {window} or less"
    )


def _attention(config: Any) -> str:
    if getattr(config, "attn_logit_softcapping", None):
        return "it caps attention logits"
    if getattr(config, "alibi", False):
        return "it uses ALiBi"
    return ""


def _rope(config: Any, context_length: int) -> str:
    parameters = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    for rope in nested or [parameters]:
        kind = rope.get("rope_type", "default")
        original = rope.get("original_max_position_embeddings") or config.max_position_embeddings
        if kind in _LENGTH_DEPENDENT_ROPE and context_length > original:
            return (
                f"its {kind} rotary embedding changes beyond {original} tokens; "
                f"set max_context_length to {original} or less"
            )
    return ""
