"""What the attention of a loaded model is like, seen by running it on two tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from outrider.engine.runtimes.refusal import refusal

AttentionFunction = Callable[..., tuple[torch.Tensor, None]]
"""(module, q [1, Hq, T, D], k [1, Hk, T, D], v [1, Hk, T, Dv], mask, **kwargs) -> [1, T, Hq, Dv]"""

_PROBE_TOKENS = 2
# Arguments that change nothing in what is computed here. Any other may, so it is refused.
_HARMLESS = frozenset(
    {
        "dropout",
        "scaling",
        "position_ids",
        "is_causal",
        "use_cache",
        "output_attentions",
        "output_router_logits",
    }
)


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """Shapes of what one layer keeps of a token."""

    num_heads: int  # of keys and values
    key_size: int
    value_size: int


@contextmanager
def attention_as(module: Any, name: str, function: AttentionFunction) -> Iterator[None]:
    """Let every attention layer of `module` call `function` while inside.

    No mask function is registered under the name: transformers then builds no mask at all.
    """
    before = module.config._attn_implementation
    AttentionInterface.register(name, function)
    module.config._attn_implementation = name
    try:
        yield
    finally:
        module.config._attn_implementation = before
        AttentionInterface._global_mapping.pop(name, None)


def attention_layers(module: Any, context_length: int) -> list[AttentionLayer]:
    """Return the layers in order. UserError where the model's attention is not ordinary."""
    seen: dict[int, AttentionLayer] = {}
    config = module.config

    def record(layer: Any, q: Any, k: Any, v: Any, mask: Any, **kwargs: Any) -> Any:
        if reason := _oddity(layer, q, k, mask, kwargs, context_length):
            raise refusal(config, reason)
        if layer.layer_idx in seen:
            raise refusal(config, f"layer {layer.layer_idx} attends twice")
        seen[layer.layer_idx] = AttentionLayer(k.shape[1], k.shape[-1], v.shape[-1])
        return q.new_zeros(1, q.shape[2], q.shape[1], v.shape[-1]), None

    device = next(module.parameters()).device
    tokens = torch.arange(_PROBE_TOKENS, device=device)[None]
    with attention_as(module, f"outrider-probe-{id(seen):x}", record), torch.inference_mode():
        try:
            module(input_ids=tokens, position_ids=tokens, use_cache=False)
        except TypeError as error:
            raise refusal(config, str(error)) from error
    return _in_order(config, seen)


def _oddity(
    layer: Any, q: Any, k: Any, mask: Any, kwargs: dict[str, Any], context_length: int
) -> str:
    if not hasattr(layer, "layer_idx"):
        return "its attention layers are not numbered"
    if getattr(layer, "is_causal", True) is False:
        return "its attention is not causal"
    if mask is not None:
        return "it makes an attention mask of its own"
    if q.shape[2] != _PROBE_TOKENS or k.shape[2] != _PROBE_TOKENS or q.shape[1] % k.shape[1]:
        return "its attention sees other tokens than it was given"
    if (window := kwargs.pop("sliding_window", None)) is not None and window < context_length:
        return f"its attention slides over {window} tokens of {context_length}"
    given = sorted(name for name, value in kwargs.items() if value is not None)
    odd = [name for name in given if name not in _HARMLESS]
    return f"its attention takes {', '.join(odd)}" if odd else ""


def _in_order(config: Any, seen: dict[int, AttentionLayer]) -> list[AttentionLayer]:
    expected = config.num_hidden_layers
    if sorted(seen) != list(range(expected)):
        raise refusal(
            config, f"{len(seen)} of its {expected} layers attend through transformers' interface"
        )
    return [seen[index] for index in range(expected)]
