"""The CPU runtime: OpenVINO's paged attention over packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openvino as ov
import torch

from outrider.config.schema import Dtype
from outrider.core import Fault, UserError
from outrider.engine.language_model import ModelShape, RowSlice
from outrider.engine.runtimes.huge_pages import new_memory_in_huge_pages
from outrider.engine.runtimes.layer_tap import features_named
from outrider.engine.runtimes.openvino_conversion import FEATURES, page_attention
from outrider.engine.runtimes.openvino_core import compiled, core
from outrider.engine.runtimes.openvino_inputs import RoundInputs
from outrider.engine.runtimes.round_size import SMALL, round_size
from outrider.engine.runtimes.rows import check_rows

BLOCK_SIZE = 32  # the only one that OpenVINO's CPU kernels take

_TYPES = {Dtype.FLOAT32: "f32", Dtype.BFLOAT16: "bf16"}


def check_settings(dtype: Dtype, block_size: int) -> None:
    """Raise UserError for what OpenVINO's CPU kernels don't do."""
    if dtype not in _TYPES:
        raise UserError(f"model.dtype {dtype.value}: openvino runs float32 and bfloat16 only")
    if block_size != BLOCK_SIZE:
        raise UserError(
            f"model.block_size {block_size}: openvino's blocks hold {BLOCK_SIZE} tokens"
        )


class OpenVinoModel:
    """A `FeatureModel` on CPU in float32 or bfloat16, from a file made by `openvino_cache`.

    Logits are float32 whatever the dtype, and live in memory that the next forward reuses.
    """

    def __init__(
        self,
        model_file: Path,
        *,
        dtype: Dtype,
        num_blocks: int,
        block_size: int,
        context_length: int,
        num_threads: int,
        digest: str,
        twin: bool = False,
        feature_layers: tuple[int, ...] = (),
    ) -> None:
        """`twin`: rounds of up to SMALL tokens have a graph, and packed weights, of their own.

        `feature_layers`: those that the file was made with.
        """
        check_settings(dtype, block_size)
        graphs = [_compile(model_file, dtype, num_threads) for _ in range(1 + twin)]
        self._shape = ModelShape(
            vocab_size=_vocab_size(graphs[0]),
            context_length=context_length,
            num_blocks=num_blocks,
            block_size=block_size,
        )
        kv_cache = _allocate_cache(graphs[0], num_blocks + 1)
        self._small, *rest = [_Graph(each, self._shape, kv_cache) for each in graphs]
        self._large = rest[0] if rest else self._small
        self._feature_layers = feature_layers
        self._feature_size = _feature_size(graphs[0])
        self._features = torch.empty(0, self._feature_size)
        self._identity = {
            "runtime": f"openvino {ov.__version__}",
            "device": "cpu",
            "dtype": dtype.value,
            "num_threads": str(num_threads),
            "weights": digest,
            **features_named(feature_layers),
        }

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
        return self._feature_size

    @property
    def features(self) -> torch.Tensor:
        """See `FeatureModel.features`."""
        return self._features

    def rounded(self, num_tokens: int) -> int:
        """See `RoundSizes`."""
        return round_size(num_tokens)

    def is_prepared(self, num_tokens: int) -> bool:
        """See `RoundSizes`: a graph that meets another size than in its last round prepares."""
        size = round_size(num_tokens)
        return self._graph(size).last_size == size

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        """See `LanguageModel.forward`. ValueError where a row breaks its contract."""
        check_rows(rows, self._shape)
        num_tokens = sum(len(row.tokens) for row in rows)
        size = round_size(num_tokens)
        graph = self._graph(size)
        logits = graph.run(rows, size)
        if self._feature_size:
            self._features = graph.features()[:num_tokens]  # what fills the round up comes last
        return logits

    def _graph(self, size: int) -> _Graph:
        return self._small if size <= SMALL else self._large


class _Graph:
    """A compiled graph with its packed weights; it runs best when rounds are of one size."""

    def __init__(self, graph: Any, shape: ModelShape, cache: dict[str, ov.Tensor]) -> None:
        self._request = graph.create_infer_request()
        self._inputs = RoundInputs(self._request, shape)
        self.last_size = 0
        for name, tensor in cache.items():
            self._request.set_tensor(name, tensor)
        with new_memory_in_huge_pages():
            # OpenVINO packs weights on first use, which is not to be a request's time.
            self.run([RowSlice([0], 0, [0], 1)], SMALL)

    def run(self, rows: Sequence[RowSlice], size: int) -> torch.Tensor:
        num_logits = self._inputs.fill(rows, size)
        self._request.infer()
        self.last_size = size
        logits = torch.from_numpy(self._request.get_output_tensor(0).data)
        return logits[:num_logits]

    def features(self) -> torch.Tensor:
        """[size, feature_size] of the last round, where the model was converted for it."""
        return torch.from_numpy(self._request.get_tensor(FEATURES).data)


def _compile(model_file: Path, dtype: Dtype, num_threads: int) -> Any:
    try:
        model = core().read_model(model_file)
    except RuntimeError as error:
        raise Fault(f"converted model {model_file} can't be read; delete its folder") from error
    page_attention(model)
    precision = _TYPES[dtype]
    return compiled(
        model, num_threads, INFERENCE_PRECISION_HINT=precision, KV_CACHE_PRECISION=precision
    )


def _allocate_cache(graph: Any, num_blocks: int) -> dict[str, ov.Tensor]:
    """The KV cache by input name; every graph of the model reads and writes the same."""
    cache = {}
    for port in graph.inputs:
        name = port.get_any_name()
        if "_cache." in name:
            _, heads, block_size, size = (
                d.get_length() if d.is_static else 0 for d in port.partial_shape
            )
            if block_size != BLOCK_SIZE:
                raise Fault(f"OpenVINO wants blocks of {block_size} tokens, not {BLOCK_SIZE}")
            shape = ov.Shape([num_blocks, heads, block_size, size])
            cache[name] = ov.Tensor(port.element_type, shape)
    return cache


def _feature_size(graph: Any) -> int:
    for port in graph.outputs:
        if FEATURES in port.get_names():
            return int(port.partial_shape[1].get_length())
    return 0


def _vocab_size(graph: Any) -> int:
    return int(graph.outputs[0].partial_shape[1].get_length())
