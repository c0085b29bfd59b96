"""Keys and values of the head's one layer for one row."""

from __future__ import annotations

import torch

_FIRST_CAPACITY = 64  # tokens


class HeadKV:
    """Grows at its end and is cut there; what was cut is overwritten.

    Entries need not be neighbours in the row: each key was turned by its own position (RoPE), so a
    hole only means that nobody looks there.
    """

    def __init__(
        self, num_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (0, 2 * num_heads, head_dim)
        self._memory = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0

    @property
    def entries(self) -> torch.Tensor:
        """[length, 2 * heads, head_dim]: of each token the keys, then the values."""
        return self._memory[: self.length]

    def append(self, entries: torch.Tensor) -> None:
        """[n, 2 * heads, head_dim]"""
        end = self.length + len(entries)
        self._reserve(end)
        self._memory[self.length : end] = entries
        self.length = end

    def cut(self, length: int) -> None:
        """Keep the first `length` entries."""
        self.length = min(self.length, length)

    def _reserve(self, length: int) -> None:
        capacity, *sizes = self._memory.shape
        if length <= capacity:
            return
        capacity = max(length, 2 * capacity, _FIRST_CAPACITY)
        grown = self._memory.new_empty((capacity, *sizes))
        grown[: self.length] = self.entries
        self._memory = grown
