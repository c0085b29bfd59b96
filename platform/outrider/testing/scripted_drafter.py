"""Stage 1 by script: proposals right, wrong or broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from outrider.engine.drafters import Drafted, DraftRow, Offer, Proposal


class ScriptedDrafter:
    """Proposes `script(tokens, length)`, cut to the length asked for; one-hot q unless given.

    `script` may return fewer tokens, raise, or return anything wrong a drafter might.
    """

    def __init__(
        self,
        script: Callable[[Sequence[int], int], list[int]],
        *,
        q: Callable[[Sequence[int]], torch.Tensor] | None = None,
        name: str = "scripted",
    ) -> None:
        self._script = script
        self._q = q
        self.name = name
        self.lengths: list[list[int]] = []  # asked for, round by round
        self.num_offers = 0

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        self.num_offers += 1
        return [Offer(self.name, tuple(range(limit))) for limit in limits]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        self.lengths.append(list(lengths))
        return Drafted([self._block(row, k) for row, k in zip(rows, lengths, strict=True)])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        pass

    def _block(self, row: DraftRow, length: int) -> Proposal:
        tokens = self._script(tuple(row.tokens), length)
        return Proposal(tokens, None if self._q is None else self._q(tokens))
