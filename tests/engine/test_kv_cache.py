"""Blocks are never lost, never written by two rows, and shared where beginnings are equal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.kv_cache import BlockPool, BlockTable

SIZE = 4


def filled(pool: BlockPool, tokens: list[int]) -> BlockTable:
    table = BlockTable()
    pool.adopt_prefix(table, tokens)
    pool.grow(table, len(tokens))
    pool.index(table, tokens, len(tokens))
    return table


def test_growing_and_trimming_keep_just_what_the_length_needs() -> None:
    pool, table = BlockPool(8, SIZE), BlockTable()
    pool.grow(table, 9)
    assert len(table.blocks) == 3
    pool.trim(table, 4)
    assert (len(table.blocks), pool.num_free) == (1, 7)
    pool.release(table)
    assert pool.num_free == 8


def test_full_blocks_are_shared_but_never_the_one_with_the_last_token() -> None:
    pool = BlockPool(8, SIZE)
    tokens = [1, 2, 3, 4, 5, 6, 7, 8]
    first = filled(pool, tokens)
    second = BlockTable()
    assert pool.adopt_prefix(second, tokens) == 4
    assert second.blocks == first.blocks[:1]
    longer = BlockTable()
    assert pool.adopt_prefix(longer, [*tokens, 9]) == 8
    pool.check_integrity([first, second, longer])


def test_a_block_is_known_by_all_that_comes_before_it() -> None:
    pool = BlockPool(8, SIZE)
    filled(pool, [1, 2, 3, 4, 9, 9, 9, 9])
    other = BlockTable()
    assert pool.adopt_prefix(other, [5, 5, 5, 5, 9, 9, 9, 9, 1]) == 0


def test_a_freed_block_is_found_again_until_it_is_reused() -> None:
    pool = BlockPool(2, SIZE)
    tokens = [1, 2, 3, 4, 5]
    pool.release(filled(pool, tokens))
    again = BlockTable()
    assert pool.adopt_prefix(again, tokens) == 4
    pool.release(again)
    pool.release(filled(pool, [9, 9, 9, 9, 9, 9, 9, 9]))
    assert pool.adopt_prefix(BlockTable(), tokens) == 0


def test_forgetting_prefixes_leaves_rows_alone() -> None:
    pool = BlockPool(4, SIZE)
    table = filled(pool, [1, 2, 3, 4, 5])
    pool.forget_prefixes()
    assert pool.adopt_prefix(BlockTable(), [1, 2, 3, 4, 5]) == 0
    pool.check_integrity([table])


def test_integrity_sees_a_lost_block() -> None:
    pool = BlockPool(4, SIZE)
    table = filled(pool, [1, 2, 3, 4, 5])
    with pytest.raises(AssertionError, match="counted"):
        pool.check_integrity([])
    table.blocks.pop()
    with pytest.raises(AssertionError, match="counted"):
        pool.check_integrity([table])


step = st.tuples(st.sampled_from(["open", "grow", "trim", "release"]), st.integers(0, 20))


@settings(max_examples=60, deadline=None)
@given(st.lists(step, max_size=60))
def test_no_order_of_calls_loses_or_doubles_a_block(steps: list[tuple[str, int]]) -> None:
    pool = BlockPool(10, SIZE)
    rows: list[tuple[BlockTable, list[int]]] = []
    for action, number in steps:
        if action == "open":
            table, tokens = BlockTable(), [number % 2] * (number + 1)
            pool.adopt_prefix(table, tokens)
            if pool.can_grow(table, len(tokens)):
                pool.grow(table, len(tokens))
                pool.index(table, tokens, len(tokens))
                rows.append((table, tokens))
            else:
                pool.release(table)
        elif rows:
            table, tokens = rows[number % len(rows)]
            if action == "grow" and pool.can_grow(table, len(tokens) + number):
                pool.grow(table, len(tokens) + number)
            elif action == "trim":
                pool.trim(table, len(tokens))
            elif action == "release":
                pool.release(table)
                rows.pop(number % len(rows))
        pool.check_integrity([table for table, _ in rows])
