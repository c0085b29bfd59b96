"""A toy target whose logits are a function of the tokens before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from outrider.engine.language_model import ExactSizes, ModelShape, RowSlice
from outrider.testing.manual_clock import ManualClock


class ScriptedModel(ExactSizes):
    """A toy target: logits are a function of the tokens before, read back from its KV blocks.

    The blocks store token ids, so that a wrong rollback, block table or prefix share changes
    what the script sees. `logits(prefix)` returns `vocab_size` floats; the prefix ends with the
    token just fed. Each forward may advance a `ManualClock` by `cost(rows, tokens)` seconds.
    """

    def __init__(
        self,
        logits: Callable[[tuple[int, ...]], Sequence[float]],
        *,
        vocab_size: int,
        context_length: int = 512,
        num_blocks: int = 256,
        block_size: int = 4,
        clock: ManualClock | None = None,
        cost: Callable[[int, int], float] = lambda rows, tokens: 0.01,
    ) -> None:
        self._logits = logits
        self._shape = ModelShape(
            vocab_size=vocab_size,
            context_length=context_length,
            num_blocks=num_blocks,
            block_size=block_size,
        )
        self._memory = [[-1] * block_size for _ in range(num_blocks)]
        self._clock = clock
        self._cost = cost
        self.num_forwards = 0
        self.num_tokens = 0

    @property
    def shape(self) -> ModelShape:
        return self._shape

    @property
    def identity(self) -> dict[str, str]:
        return {"runtime": "scripted", "dtype": "float64"}

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        """Return logits [sum of num_logits, vocab_size] in float64."""
        self.num_forwards += 1
        num_tokens = sum(len(row.tokens) for row in rows)
        self.num_tokens += num_tokens
        if self._clock is not None:
            self._clock.advance(self._cost(len(rows), num_tokens))
        out = [line for row in rows for line in self._score(row)]
        return torch.tensor(out, dtype=torch.float64).reshape(len(out), self._shape.vocab_size)

    def _score(self, row: RowSlice) -> list[Sequence[float]]:
        for offset, token in enumerate(row.tokens):
            block, slot = divmod(row.past_length + offset, self._shape.block_size)
            self._memory[row.blocks[block]][slot] = token
        length = row.past_length + len(row.tokens)
        if length > self._shape.context_length:
            raise ValueError(f"{length} tokens exceed the context of {self._shape.context_length}")
        prefix = self._read(row.blocks, length)
        first = length - row.num_logits
        return [self._logits(prefix[: end + 1]) for end in range(first, length)]

    def _read(self, blocks: Sequence[int], length: int) -> tuple[int, ...]:
        flat = [token for block in blocks for token in self._memory[block]]
        return tuple(flat[:length])
