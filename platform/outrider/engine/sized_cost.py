"""What the next round would cost, by the sizes rounds come in and what the model is ready for."""

from __future__ import annotations

from outrider.engine.cost import CostTable
from outrider.engine.language_model import RoundSizes


class SizedCost:
    """Seconds by tokens really computed, and of a change where the model is not prepared."""

    def __init__(self, table: CostTable, sizes: RoundSizes) -> None:
        self._table = table
        self._sizes = sizes

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        """Seconds of rounds of first, first + 1, ... tokens scored: [count].

        They rise with the tokens but for sizes the model is prepared for, which come cheaper.
        """
        sizes = [self._sizes.rounded(tokens) for tokens in range(first, first + count)]
        smallest = sizes[0]
        curve = self._table.predict_range(rows, smallest, sizes[-1] - smallest + 1, draft_steps)
        return [
            curve[size - smallest]
            + (0.0 if self._sizes.is_prepared(size) else self._table.change_s)
            for size in sizes
        ]
