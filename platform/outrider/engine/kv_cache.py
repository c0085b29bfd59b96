"""Who owns which KV block: allocation, prefix sharing, eviction. Ids only; memory is the model's.

A full block of committed tokens is known by the hash of everything up to its end, so that a later
row with the same beginning shares it. Only full blocks are shared, hence no block is ever written
by two rows. A freed block keeps its content, oldest first in line to be reused.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class BlockTable:
    """The blocks of one row, in order, and how many of them are known to the prefix index."""

    blocks: list[int] = field(default_factory=list)
    num_indexed: int = 0
    last_hash: bytes = b""


class BlockPool:
    """A pool of `num_blocks` KV blocks of `block_size` tokens."""

    def __init__(self, num_blocks: int, block_size: int, *, prefix_caching: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._prefix_caching = prefix_caching
        self._uses = [0] * num_blocks
        self._free: OrderedDict[int, None] = OrderedDict(
            (block, None) for block in range(num_blocks)
        )
        self._hash_of: dict[int, bytes] = {}
        self._block_of: dict[bytes, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_used(self) -> int:
        return self.num_blocks - self.num_free

    def num_needed(self, table: BlockTable, length: int) -> int:
        """Blocks that `table` lacks to hold `length` tokens."""
        return max(0, -(-length // self.block_size) - len(table.blocks))

    def can_grow(self, table: BlockTable, length: int) -> bool:
        return self.num_needed(table, length) <= self.num_free

    def grow(self, table: BlockTable, length: int) -> None:
        """Give `table` room for `length` tokens. Ask `can_grow` first."""
        for _ in range(self.num_needed(table, length)):
            table.blocks.append(self._take())

    def trim(self, table: BlockTable, length: int) -> None:
        """Give back the blocks behind `length` tokens (room for drafts that were rejected)."""
        keep = -(-length // self.block_size)
        while len(table.blocks) > keep:
            self._drop(table.blocks.pop())

    def release(self, table: BlockTable) -> None:
        """Free all blocks at once, last first, so that beginnings live longest."""
        while table.blocks:
            self._drop(table.blocks.pop())
        table.num_indexed, table.last_hash = 0, b""

    def adopt_prefix(self, table: BlockTable, tokens: Sequence[int]) -> int:
        """Share the known blocks at the beginning of `tokens`; return the tokens they hold.

        The last token is never taken from the index: its logits are needed.
        """
        if not self._prefix_caching:
            return 0
        for start in range(0, len(tokens) - self.block_size, self.block_size):
            digest = self._digest(table.last_hash, tokens[start : start + self.block_size])
            block = self._block_of.get(digest)
            if block is None:
                break
            self._share(block)
            table.blocks.append(block)
            table.num_indexed, table.last_hash = table.num_indexed + 1, digest
        return len(table.blocks) * self.block_size

    def index(self, table: BlockTable, tokens: Sequence[int], length: int) -> None:
        """Make the full blocks among the first `length` committed tokens known to others."""
        if not self._prefix_caching:
            return
        while (table.num_indexed + 1) * self.block_size <= length:
            start = table.num_indexed * self.block_size
            digest = self._digest(table.last_hash, tokens[start : start + self.block_size])
            block = table.blocks[table.num_indexed]
            if digest not in self._block_of:
                self._block_of[digest], self._hash_of[block] = block, digest
            table.num_indexed, table.last_hash = table.num_indexed + 1, digest

    def forget(self, table: BlockTable) -> None:
        """Let no later row find the blocks of `table`."""
        for block in table.blocks:
            self._forget(block)

    def forget_prefixes(self) -> None:
        """Empty the prefix index; rows in flight keep their blocks."""
        self._hash_of.clear()
        self._block_of.clear()

    def check_integrity(self, tables: Sequence[BlockTable]) -> None:
        """Raise AssertionError unless uses, free list and the given live tables agree."""
        uses = [0] * self.num_blocks
        for table in tables:
            for block in table.blocks:
                uses[block] += 1
        if uses != self._uses:
            raise AssertionError(f"KV blocks counted {self._uses} but held {uses}")
        if {block for block, count in enumerate(uses) if count == 0} != set(self._free):
            raise AssertionError("the free list differs from the unused KV blocks")

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        self._forget(block)
        self._uses[block] = 1
        return block

    def _forget(self, block: int) -> None:
        digest = self._hash_of.pop(block, None)
        if digest is not None:
            del self._block_of[digest]

    def _share(self, block: int) -> None:
        self._free.pop(block, None)
        self._uses[block] += 1

    def _drop(self, block: int) -> None:
        self._uses[block] -= 1
        if self._uses[block] == 0:
            self._free[block] = None
            if block not in self._hash_of:  # nothing to find in it: reuse it first
                self._free.move_to_end(block, last=False)

    @staticmethod
    def _digest(previous: bytes, tokens: Sequence[int]) -> bytes:
        packed = b"".join(token.to_bytes(8, "little", signed=True) for token in tokens)
        return hashlib.blake2b(packed, key=previous[:64], digest_size=32).digest()
