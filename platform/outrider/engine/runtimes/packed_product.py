"""A product with weights of eight bits: few tokens read the weights more than they compute.

Each output has a scale of its own (LLM.int8(), arXiv 2208.07339, section 2.1, without outliers).
For drafts only: what a target computes is not to be rounded like this.
"""

from __future__ import annotations

import numpy as np
import openvino as ov
import torch
from openvino import opset13 as ops

from outrider.engine.runtimes.huge_pages import new_memory_in_huge_pages
from outrider.engine.runtimes.openvino_core import compiled

_LEVELS = 127  # on each side of zero


class PackedProduct:
    """[n, K] -> [n, N], both float32, for `weight` [N, K]; within a percent or so of the exact one.

    It runs on the threads of the target's own graphs: other threads would wait for those.
    """

    def __init__(self, weight: torch.Tensor, num_threads: int) -> None:
        graph = compiled(_graph(weight), num_threads, INFERENCE_PRECISION_HINT="f32")
        self._request = graph.create_infer_request()
        with new_memory_in_huge_pages():
            self(torch.zeros(1, weight.shape[1]))  # weights are packed on first use

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        given = ov.Tensor(inputs.contiguous().numpy(), shared_memory=True)
        self._request.set_input_tensor(given)
        self._request.infer()
        # The next round overwrites it.
        return torch.from_numpy(self._request.get_output_tensor().data.copy())


def _graph(weight: torch.Tensor) -> ov.Model:
    weight = weight.float()
    scales = weight.abs().amax(dim=1, keepdim=True) / _LEVELS
    scales[scales == 0] = 1.0  # a line of zeros
    levels = (weight / scales).round().to(torch.int8)
    inputs = ops.parameter([-1, weight.shape[1]], np.float32)
    whole = ops.multiply(ops.convert(ops.constant(levels.numpy()), np.float32), scales.numpy())
    return ov.Model([ops.matmul(inputs, whole, False, True)], [inputs])
