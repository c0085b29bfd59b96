"""Rounds run before the first request, so that the cost model does not begin blind.

They are real forwards over scratch KV; what they cannot show (drafting, acceptance, the commit) is
learnt from the rounds that follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from outrider.core import Clock
from outrider.engine.cost import CostModel
from outrider.engine.kv_cache import BlockPool, BlockTable
from outrider.engine.language_model import LanguageModel, RowSlice

_ROWS = (1, 2, 4, 8, 16, 32)
_TOKENS_PER_ROW = (1, 2, 4, 8, 16)
_MOST_TOKENS = 256  # scored in one round of a calibration
_PAST = 192  # tokens: a context of ordinary length


def calibrate(
    model: LanguageModel, pool: BlockPool, cost: CostModel, clock: Clock, *, max_rows: int
) -> None:
    """Time forwards of growing size and teach them to `cost`. The engine must be idle."""
    past = min(_PAST, model.shape.context_length // 2)
    for is_timed in (False, True):  # the first of a size may compile or allocate
        for rows, tokens in _grid(max_rows, pool, past, model.shape.context_length - past):
            slices, tables = _scratch(pool, rows, tokens, past)
            for _ in range(2):  # once after a change of size, once without
                changed = not model.is_prepared(rows * tokens)
                started = clock.monotonic()
                model.forward(slices)
                seconds, size = clock.monotonic() - started, model.rounded(rows * tokens)
                if is_timed:
                    cost.observe(rows, size, 0, seconds, changed=changed)
            for table in tables:
                pool.release(table)


def _grid(max_rows: int, pool: BlockPool, past: int, room: int) -> Iterator[tuple[int, int]]:
    for rows in _ROWS:
        for tokens in _TOKENS_PER_ROW:
            needed = rows * -(-(past + tokens) // pool.block_size)
            fits = tokens <= room and needed <= pool.num_free
            if fits and rows <= max_rows and rows * tokens <= _MOST_TOKENS:
                yield rows, tokens


def _scratch(
    pool: BlockPool, rows: int, tokens: int, past: int
) -> tuple[list[RowSlice], Sequence[BlockTable]]:
    tables = [BlockTable() for _ in range(rows)]
    for table in tables:
        pool.grow(table, past + tokens)
    return [RowSlice([0] * tokens, past, table.blocks, tokens) for table in tables], tables
