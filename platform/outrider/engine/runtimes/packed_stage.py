"""A draft head's stage on the CPU, with weights of eight bits: few tokens read the weights more
than they compute.

Each output has a scale of its own (LLM.int8(), arXiv 2208.07339, section 2.1, without outliers).
For drafts only: what a target computes is not to be rounded like this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import torch
from openvino import opset13 as ops
from torch import nn

from outrider.engine.runtimes.huge_pages import new_memory_in_huge_pages
from outrider.engine.runtimes.openvino_conversion import traced
from outrider.engine.runtimes.openvino_core import compiled

_LEVELS = 127  # on each side of zero


class PackedStage:
    """`module`, in float32 but for its weights, within a percent or so in each product.

    It runs on the threads of the target's own graphs: other threads would wait for those.
    """

    def __init__(
        self, module: nn.Module, example: Sequence[torch.Tensor], *, num_threads: int
    ) -> None:
        model = traced(module, tuple(example))
        model.reshape({i: [-1, *each.shape[1:]] for i, each in enumerate(example)})
        _pack(model)
        graph = compiled(model, num_threads, INFERENCE_PRECISION_HINT="f32")
        self._request = graph.create_infer_request()
        self._num_outputs = len(graph.outputs)
        with new_memory_in_huge_pages():
            self(*example)  # weights are packed on first use

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        held = [np.ascontiguousarray(each.numpy()) for each in inputs]  # OpenVINO holds nothing
        for index, each in enumerate(held):
            self._request.set_input_tensor(index, ov.Tensor(each, shared_memory=True))
        self._request.infer()
        # The next round overwrites them.
        return [
            torch.from_numpy(self._request.get_output_tensor(index).data.copy())
            for index in range(self._num_outputs)
        ]


def _pack(model: ov.Model) -> None:
    """Round the weights of every product in place."""
    for node in model.get_ordered_ops():
        weight = node.input_value(1).get_node() if node.get_type_name() == "MatMul" else None
        if weight is not None and weight.get_type_name() == "Constant":
            node.input(1).replace_source_output(_packed(weight.data, node).output(0))


def _packed(weight: np.ndarray, product: Any) -> Any:
    assert product.get_attributes()["transpose_b"]  # [outputs, inputs], as torch has them
    scales = np.abs(weight).max(axis=1, keepdims=True) / _LEVELS
    scales[scales == 0] = 1.0  # a line of zeros
    levels = np.rint(weight / scales).astype(np.int8)
    return ops.multiply(ops.convert(ops.constant(levels), np.float32), scales.astype(np.float32))
