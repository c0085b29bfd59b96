"""What a round tells an OpenVINO graph, in memory that the graph reads where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import openvino as ov

from outrider.engine.language_model import ModelShape, RowSlice
from outrider.engine.runtimes.rows import check_ids, num_used_blocks


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


class RoundInputs:
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
