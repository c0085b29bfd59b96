"""What the next round would cost, by the sizes rounds come in and what the model is ready for."""

from __future__ import annotations

from outrider.engine.cost_table import CostTable
from outrider.engine.language_model import RoundSizes


class SizedCost:
    """Seconds by tokens really computed, and of a change where the model is not prepared."""

    def __init__(self, table: CostTable, sizes: RoundSizes) -> None:
        self._table = table
        self._sizes = sizes

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        """Seconds of rounds of first, first + 1, ... tokens scored: [count].

        The first is the round without drafts. It is never charged for a change of size: coming to
        rest saves time in every round after, where going on drafting would cost it.
        """
        sizes = [self._sizes.rounded(tokens) for tokens in range(first, first + count)]
        smallest = sizes[0]
        curve = self._table.predict_range(rows, smallest, sizes[-1] - smallest + 1, draft_steps)
        seconds = [curve[size - smallest] for size in sizes]
        for index, size in enumerate(sizes):
            if size != smallest and not self._sizes.is_prepared(size):
                seconds[index] += self._table.change_s
        return seconds
