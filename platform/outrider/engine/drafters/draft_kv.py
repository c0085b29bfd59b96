"""What the draft model remembers of each row: how far its KV is valid, and which blocks hold it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from outrider.engine.kv_cache import BlockPool, BlockTable
from outrider.engine.language_model import ModelShape


@dataclass(slots=True)
class RowKV:
    """The draft KV of one row.

    It holds the first `num_confirmed` committed tokens, then `num_read` of the `drafted` ones,
    of which nobody has told yet whether they were accepted. `num_known` is how much of the row
    was there when it was met (0 after an eviction): reading that is not late.
    """

    num_known: int
    table: BlockTable = field(default_factory=BlockTable)
    num_confirmed: int = 0
    drafted: list[int] = field(default_factory=list)
    num_read: int = 0

    @property
    def num_valid(self) -> int:
        return self.num_confirmed + self.num_read

    def settle(self, tokens: Sequence[int]) -> int:
        """Keep what agrees with the row's tokens; return how many tokens were accounted for.

        Those are the ones known when the row was met and the drafts that were accepted: reading
        others, but for the row's last, is late. The last token always stays to be read, since its
        logits are wanted. Committed tokens never change, so only the drafted tail is compared.
        """
        agreed = _num_equal(self.drafted, tokens[self.num_confirmed :])
        expected = max(self.num_confirmed + agreed, self.num_known)
        valid = self.num_confirmed + min(agreed, self.num_read)
        self.num_confirmed = min(valid, len(tokens) - 1)
        self.drafted, self.num_read, self.num_known = [], 0, 0
        return expected


class DraftKV:
    """Blocks of the draft model's pool, taken from the row idle for longest when they run out.

    Equal beginnings of rows share their blocks, as they do in the target's cache.
    """

    def __init__(self, shape: ModelShape) -> None:
        self._pool = BlockPool(shape.num_blocks, shape.block_size)
        self._rows: OrderedDict[int, RowKV] = OrderedDict()  # least recently used first

    @property
    def num_free(self) -> int:
        return self._pool.num_free

    def open(self, row_id: int, num_known: int) -> RowKV:
        """The row's KV, made if it is new, marked as used now."""
        kv = self._rows.setdefault(row_id, RowKV(num_known))
        self._rows.move_to_end(row_id)
        return kv

    def adopt_prefix(self, kv: RowKV, tokens: Sequence[int]) -> None:
        """Let a row without KV share what another has computed of the same beginning."""
        if not kv.table.blocks:
            kv.num_confirmed = self._pool.adopt_prefix(kv.table, tokens)

    def share_prefix(self, kv: RowKV, tokens: Sequence[int]) -> None:
        """Let others share the confirmed beginning."""
        self._pool.index(kv.table, tokens, kv.num_confirmed)

    def reserve(self, kv: RowKV, num_tokens: int, busy: Container[int]) -> str | None:
        """Make room for `num_tokens`, evicting rows outside `busy`; say why it can't be done."""
        for row_id in list(self._rows):
            if self._pool.can_grow(kv.table, num_tokens):
                break
            if row_id not in busy:
                self.evict(row_id)
        if not self._pool.can_grow(kv.table, num_tokens):
            return "draft KV is full"
        self._pool.grow(kv.table, num_tokens)
        return None

    def evict(self, row_id: int) -> None:
        """Free the row's blocks; it is read again from its beginning, and that is late."""
        kv = self._rows[row_id]
        self._pool.release(kv.table)
        kv.num_known, kv.num_confirmed, kv.drafted, kv.num_read = 0, 0, [], 0

    def drop(self, row_id: int) -> None:
        """The row has ended."""
        if row_id in self._rows:
            self.evict(row_id)
            del self._rows[row_id]

    def check_integrity(self) -> None:
        """Raise AssertionError unless the pool and the rows agree on every block."""
        self._pool.check_integrity([kv.table for kv in self._rows.values()])


def _num_equal(some: Sequence[int], others: Sequence[int]) -> int:
    """Length of the common beginning."""
    for index, (one, other) in enumerate(zip(some, others, strict=False)):
        if one != other:
            return index
    return min(len(some), len(others))
