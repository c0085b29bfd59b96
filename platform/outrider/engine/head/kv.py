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
        shape = (2, num_heads, 0, head_dim)
        self._memory = torch.empty(shape, dtype=dtype, device=device)  # keys, values
        self.length = 0

    @property
    def keys(self) -> torch.Tensor:
        """[heads, length, head_dim]"""
        return self._memory[0, :, : self.length]

    @property
    def values(self) -> torch.Tensor:
        """[heads, length, head_dim]"""
        return self._memory[1, :, : self.length]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Both [n, heads, head_dim]."""
        end = self.length + keys.shape[0]
        self._reserve(end)
        self._memory[0, :, self.length : end] = keys.transpose(0, 1)
        self._memory[1, :, self.length : end] = values.transpose(0, 1)
        self.length = end

    def cut(self, length: int) -> None:
        """Keep the first `length` entries."""
        self.length = min(self.length, length)

    def _reserve(self, length: int) -> None:
        _, heads, capacity, head_dim = self._memory.shape
        if length <= capacity:
            return
        capacity = max(length, 2 * capacity, _FIRST_CAPACITY)
        grown = self._memory.new_empty((2, heads, capacity, head_dim))
        grown[:, :, : self.length] = self._memory[:, :, : self.length]
        self._memory = grown
