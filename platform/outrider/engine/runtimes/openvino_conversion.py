"""A Hugging Face module becomes an OpenVINO model with paged attention.

The paged form can't be saved, so a stateful one is (`convert`, once per weights), and is rewritten
each time it is loaded (`page_attention`). Its pattern is only found where each state is gathered by
`beam_idx` and starts empty; otherwise nothing happens and nothing is said, hence the check.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import openvino as ov
import torch
import torch.nn.functional as F
from openvino import opset13 as ops
from openvino._offline_transformations import (
    apply_make_stateful_transformation,
    paged_attention_transformation,
)
from openvino.tools.ovc import convert_impl, telemetry_stub, telemetry_utils
from torch import nn
from transformers.cache_utils import DynamicCache, DynamicLayer

from outrider.core import Fault
from outrider.engine.runtimes.attention_layers import (
    AttentionLayer,
    attention_as,
    attention_layers,
)
from outrider.engine.runtimes.layer_tap import LayerTap
from outrider.engine.runtimes.loading import own_config
from outrider.engine.runtimes.refusal import refuse_inexact

RECIPE = "1"  # raise it when the converted graph changes: it is part of the cache key

FEATURES = "features"  # the output that only a model converted with feature layers has

# OpenVINO tells its makers of each conversion, unless its telemetry package is missing; this is
# what it takes then.
convert_impl.tm = telemetry_utils.tm = telemetry_stub

_INPUTS = ("input_ids", "position_ids", "logit_indices")


def convert(module: Any, context_length: int, feature_layers: Sequence[int] = ()) -> ov.Model:
    """Return the stateful model: logits [L, vocab] of the flat positions `logit_indices` [L].

    Where `feature_layers` are asked for, it has one more output, last: `features` [T, size].
    Takes `module` (float32) over. UserError where it can't be run exactly, or not be traced.
    """
    refuse_inexact(own_config(module), context_length)
    layers = attention_layers(module, context_length)
    with attention_as(module, f"outrider-export-{id(module):x}", _attend):
        model = traced(_Exported(module, feature_layers), _example(layers))
    _name(model, layers)
    _gather_states_by_beam(model, layers)
    apply_make_stateful_transformation(model, dict(_state_names(len(layers))))
    _start_states_empty(model)
    model.validate_nodes_and_infer_types()
    return model


def traced(module: nn.Module, example: tuple[torch.Tensor, ...]) -> ov.Model:
    """`module` as it runs on these inputs, of any sizes."""
    with _quiet():
        return ov.convert_model(module, example_input=example)


def page_attention(model: ov.Model) -> None:
    """Turn the states of a model made by `convert` into key_cache.* and value_cache.* inputs."""
    num_layers = len(model.get_variables()) // 2
    paged_attention_transformation(model)
    names = {name for port in model.inputs for name in port.get_names()}
    if any(f"key_cache.{layer}" not in names for layer in range(num_layers)):
        raise Fault("OpenVINO found no attention to page in the converted model")


class _Exported(nn.Module):
    """The module with its cache as inputs and outputs; only wanted positions reach the head."""

    def __init__(self, module: Any, feature_layers: Sequence[int]) -> None:
        super().__init__()
        self.module = module
        self.tap = LayerTap(module, feature_layers) if feature_layers else None
        self.head = _GatheredHead(module.get_output_embeddings())
        module.set_output_embeddings(self.head)

    def forward(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        logit_indices: torch.Tensor,
        *past: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        cache = DynamicCache()
        cache.layers = [_filled(*pair) for pair in zip(past[::2], past[1::2], strict=True)]
        self.head.indices = logit_indices
        logits = self.module(
            input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True
        ).logits
        present = [state for layer in cache.layers for state in (layer.keys, layer.values)]
        features = () if self.tap is None else (self.tap.features(),)
        return (logits, *present, *features)


class _GatheredHead(nn.Module):
    """The model's own head, on the wanted positions only: most are never read."""

    indices: torch.Tensor

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        # Flat first: the paged form swaps the batch and token axes.
        wanted: torch.Tensor = self.head(
            hidden.reshape(-1, hidden.shape[-1]).index_select(0, self.indices)
        )
        return wanted


def _filled(keys: torch.Tensor, values: torch.Tensor) -> Any:
    layer = DynamicLayer()
    layer.lazy_initialization(keys, values)
    layer.keys, layer.values = keys, values
    return layer


def _attend(
    layer: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention in the form that OpenVINO recognises. Paging replaces it, causal mask and all."""
    repeats = q.shape[1] // k.shape[1]
    k, v = _repeat(k, repeats), _repeat(v, repeats)
    output = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling)
    return output.transpose(1, 2).contiguous(), None


def _repeat(states: torch.Tensor, repeats: int) -> torch.Tensor:
    """[B, Hk, S, D] -> [B, Hk * repeats, S, D]"""
    if repeats == 1:
        return states
    batch, heads, length, size = states.shape
    expanded = states[:, :, None].expand(batch, heads, repeats, length, size)
    return expanded.reshape(batch, heads * repeats, length, size)


def _example(layers: Sequence[AttentionLayer]) -> tuple[torch.Tensor, ...]:
    past = [
        torch.zeros(1, layer.num_heads, 3, size)
        for layer in layers
        for size in (layer.key_size, layer.value_size)
    ]
    return (
        torch.zeros(1, 4, dtype=torch.int64),
        torch.arange(3, 7)[None],
        torch.tensor([1, 3]),
        *past,
    )


def _state_names(num_layers: int) -> list[tuple[str, str]]:
    """[(past input, present output)] in the order of the example's inputs."""
    return [
        (f"past.{layer}.{kind}", f"present.{layer}.{kind}")
        for layer in range(num_layers)
        for kind in ("key", "value")
    ]


def _name(model: ov.Model, layers: Sequence[AttentionLayer]) -> None:
    states = _state_names(len(layers))
    sizes = [size for layer in layers for size in (layer.key_size, layer.value_size)]
    heads = [layer.num_heads for layer in layers for _ in range(2)]
    shapes = [[-1, -1], [-1, -1], [-1]]
    shapes += [[-1, head, -1, size] for head, size in zip(heads, sizes, strict=True)]
    names = [*_INPUTS, *(past for past, _ in states)]
    for port, name in zip(model.inputs, names, strict=True):
        port.tensor.set_names({name})
        port.node.set_friendly_name(name)
    outputs = ["logits", *(now for _, now in states), FEATURES][: len(model.outputs)]
    for port, name in zip(model.outputs, outputs, strict=True):
        port.tensor.set_names({name})
    model.reshape(dict(zip(names, map(ov.PartialShape, shapes), strict=True)))


def _gather_states_by_beam(model: ov.Model, layers: Sequence[AttentionLayer]) -> None:
    beam = ops.parameter([-1], np.int32, name="beam_idx")
    beam.output(0).tensor.set_names({"beam_idx"})
    model.add_parameters([beam])
    for past, _ in _state_names(len(layers)):
        port = model.input(past)
        readers = list(port.get_target_inputs())
        gathered = ops.gather(port, beam, ops.constant(0, dtype=np.int64))
        for reader in readers:
            reader.replace_source_output(gathered.output(0))
    model.validate_nodes_and_infer_types()


def _start_states_empty(model: ov.Model) -> None:
    zero_axis = ops.constant(0, dtype=np.int64)
    shape = ops.shape_of(model.input("input_ids"), output_type="i64")
    batch = ops.gather(shape, ops.constant([0], dtype=np.int64), zero_axis)
    for node in model.get_ops():
        if node.get_type_name() != "ReadValue":
            continue
        _, heads, _, size = node.get_output_partial_shape(0)
        dims = [
            batch,
            *(
                ops.constant([d], dtype=np.int64)
                for d in (heads.get_length(), 0, size.get_length())
            ),
        ]
        empty = ops.broadcast(ops.constant(0.0, dtype=np.float32), ops.concat(dims, axis=0))
        node.set_arguments([empty.output(0)])


@contextmanager
def _quiet() -> Iterator[None]:
    """Tracing warns of Python values in the graph; here they are shapes that don't change."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.inference_mode(mode=False), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
