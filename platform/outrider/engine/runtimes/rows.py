"""What a forward was asked for, checked against the contract and laid out flat."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.engine.language_model import ModelShape, RowSlice


def check_rows(rows: Sequence[RowSlice], shape: ModelShape) -> None:
    """Raise ValueError where a row breaks the contract of `RowSlice`.

    Ids are checked as arrays where they are laid out (`check_ids`): a loop over tokens is slow.
    """
    if not rows:
        raise ValueError("forward needs at least one row")
    for index, row in enumerate(rows):
        num_new = len(row.tokens)
        length = row.past_length + num_new
        if (
            num_new < 1
            or row.past_length < 0
            or not 0 <= row.num_logits <= num_new
            or length > len(row.blocks) * shape.block_size
            or length > shape.context_length
        ):
            raise ValueError(f"row {index}: {_complaint(row, shape)}")


def _complaint(row: RowSlice, shape: ModelShape) -> str:
    num_new = len(row.tokens)
    length = row.past_length + num_new
    if num_new < 1:
        return "no tokens"
    if row.past_length < 0:
        return f"past_length {row.past_length} is negative"
    if not 0 <= row.num_logits <= num_new:
        return f"num_logits {row.num_logits} is not between 0 and its {num_new} tokens"
    if length > shape.context_length:
        return f"{length} tokens do not fit the context of {shape.context_length}"
    capacity = len(row.blocks) * shape.block_size
    return f"{length} tokens do not fit its {len(row.blocks)} blocks ({capacity} tokens)"


def check_ids(what: str, lowest: int, highest: int, limit: int) -> None:
    """Raise ValueError unless 0 <= lowest and highest < limit."""
    if lowest < 0 or highest >= limit:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(f"{what} {wrong} is not between 0 and {limit - 1}")


def num_used_blocks(row: RowSlice, block_size: int) -> int:
    """Blocks that this row's tokens reach, counted from its first."""
    return -(-(row.past_length + len(row.tokens)) // block_size)
