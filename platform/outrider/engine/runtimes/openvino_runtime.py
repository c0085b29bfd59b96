"""The CPU runtime: OpenVINO's paged attention over packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import torch

from outrider.config.schema import Dtype
from outrider.core import Fault, UserError
from outrider.engine.language_model import ModelShape, RowSlice
from outrider.engine.runtimes.huge_pages import new_memory_in_huge_pages
from outrider.engine.runtimes.openvino_conversion import page_attention
from outrider.engine.runtimes.round_size import SMALL, round_size
from outrider.engine.runtimes.rows import check_ids, check_rows, num_used_blocks

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
    """A `LanguageModel` on CPU in float32 or bfloat16, from a file made by `openvino_cache`.

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
    ) -> None:
        """`twin`: rounds of up to SMALL tokens have a graph, and packed weights, of their own."""
        check_settings(dtype, block_size)
        compiled = [_compile(model_file, dtype, num_threads) for _ in range(1 + twin)]
        self._shape = ModelShape(
            vocab_size=_vocab_size(compiled[0]),
            context_length=context_length,
            num_blocks=num_blocks,
            block_size=block_size,
        )
        kv_cache = _allocate_cache(compiled[0], num_blocks + 1)
        self._small, *rest = [_Graph(each, self._shape, kv_cache) for each in compiled]
        self._large = rest[0] if rest else self._small
        self._identity = {
            "runtime": f"openvino {ov.__version__}",
            "device": "cpu",
            "dtype": dtype.value,
            "num_threads": str(num_threads),
            "weights": digest,
        }

    @property
    def shape(self) -> ModelShape:
        return self._shape

    @property
    def identity(self) -> dict[str, str]:
        return dict(self._identity)

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
        size = round_size(sum(len(row.tokens) for row in rows))
        return self._graph(size).run(rows, size)

    def _graph(self, size: int) -> _Graph:
        return self._small if size <= SMALL else self._large


class _Graph:
    """A compiled graph with its packed weights; it runs best when rounds are of one size."""

    def __init__(self, compiled: Any, shape: ModelShape, cache: dict[str, ov.Tensor]) -> None:
        self._request = compiled.create_infer_request()
        self._inputs = _Inputs(self._request, shape)
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


class _Buffer:
    """Memory of one input that lives from round to round; OpenVINO reads it where it lies."""

    def __init__(self, request: Any, name: str, dtype: type[np.generic]) -> None:
        self._request = request
        self._name = name
        self._views: dict[int, ov.Tensor] = {}
        self._array = np.zeros(1024, dtype)

    def put(self, numbers: Sequence[int]) -> np.ndarray[Any, Any]:
        """Copy `numbers` in, let the request read them, and return the array [n]."""
        size = len(numbers)
        if size > len(self._array):
            self._array = np.zeros(2 * size, self._array.dtype)
            self._views.clear()
        filled = self._array[:size]
        filled[:] = numbers
        view = self._views.get(size)
        if view is None:
            view = self._views[size] = ov.Tensor(filled, shared_memory=True)
        self._request.set_tensor(self._name, view)
        return filled


class _Inputs:
    """Everything a round tells the graph.

    A round may be filled up with a row that is nobody's, so that its size is one that runs well.
    """

    def __init__(self, request: Any, shape: ModelShape) -> None:
        self._shape = shape
        self._input_ids = _Buffer(request, "input_ids", np.int64)
        self._position_ids = _Buffer(request, "position_ids", np.int64)
        self._logit_indices = _Buffer(request, "logit_indices", np.int64)
        self._past_lens = _Buffer(request, "past_lens", np.int32)
        self._subsequence_begins = _Buffer(request, "subsequence_begins", np.int32)
        self._block_indices = _Buffer(request, "block_indices", np.int32)
        self._block_indices_begins = _Buffer(request, "block_indices_begins", np.int32)
        self._max_context_len = np.zeros((), np.int32)
        request.set_tensor("max_context_len", ov.Tensor(self._max_context_len, shared_memory=True))

    def fill(self, rows: Sequence[RowSlice], size: int) -> int:
        """Lay the rows out flat and fill up to `size` tokens; return how many logits they want.

        ValueError for a wrong id.
        """
        begins, block_begins = [0], [0]
        positions: list[int] = []
        blocks: list[int] = []
        wanted: list[int] = []
        fillers = self._fillers(rows, size)
        filled = [*rows, *fillers]
        for row in filled:
            end = row.past_length + len(row.tokens)
            positions.extend(range(row.past_length, end))
            blocks.extend(row.blocks[: num_used_blocks(row, self._shape.block_size)])
            begins.append(len(positions))
            block_begins.append(len(blocks))
            wanted.extend(range(begins[-1] - row.num_logits, begins[-1]))
        tokens = self._input_ids.put(list(chain.from_iterable(row.tokens for row in filled)))
        check_ids("token id", int(tokens.min()), int(tokens.max()), self._shape.vocab_size)
        num_nobodys = sum(len(row.blocks) for row in fillers)
        used = self._block_indices.put(blocks)[: len(blocks) - num_nobodys]
        check_ids("block id", int(used.min()), int(used.max()), self._shape.num_blocks)
        self._position_ids.put(positions)
        self._past_lens.put([row.past_length for row in filled])
        self._subsequence_begins.put(begins)
        self._block_indices_begins.put(block_begins)
        # The graph needs one position at least; where none is wanted, its logits are dropped.
        self._logit_indices.put(wanted or [0])
        self._max_context_len[...] = max(row.past_length + len(row.tokens) for row in filled)
        return len(wanted)

    def _fillers(self, rows: Sequence[RowSlice], size: int) -> list[RowSlice]:
        """At most one row; its KV goes to a block that is nobody's and is never read."""
        missing = size - sum(len(row.tokens) for row in rows)
        nobody = self._shape.num_blocks
        blocks = [nobody] * -(-missing // self._shape.block_size)
        return [RowSlice([0] * missing, 0, blocks, 0)] if missing else []


@cache
def _core() -> Any:
    """One for the life of the process.

    The CPU plugin gives the thread that loads it a signal stack, and frees it with the last Core,
    from whatever thread: the next signal would then crash the process.
    """
    return ov.Core()


def _compile(model_file: Path, dtype: Dtype, num_threads: int) -> Any:
    core = _core()
    try:
        model = core.read_model(model_file)
    except RuntimeError as error:
        raise Fault(f"converted model {model_file} can't be read; delete its folder") from error
    page_attention(model)
    return core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": _TYPES[dtype],
            "KV_CACHE_PRECISION": _TYPES[dtype],
            "INFERENCE_NUM_THREADS": num_threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            # Processes that pin would meet on the same cores while others idle
            "ENABLE_CPU_PINNING": False,
        },
    )


def _allocate_cache(compiled: Any, num_blocks: int) -> dict[str, ov.Tensor]:
    """The KV cache by input name; every graph of the model reads and writes the same."""
    cache = {}
    for port in compiled.inputs:
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


def _vocab_size(compiled: Any) -> int:
    return int(compiled.outputs[0].partial_shape[1].get_length())
