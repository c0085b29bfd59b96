"""Seconds of rounds, read off at the knots of a grid: straight lines between and behind them."""

from __future__ import annotations

from bisect import bisect_right

ROWS = (1, 2, 4, 8, 16, 32, 64)
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class CostTable:
    """Seconds at the knots, rising along tokens and rows as real cost does."""

    def __init__(self, grid: list[list[float]], draft: list[float], change_s: float) -> None:
        self.change_s = change_s  # seconds that a round of another size than the last adds
        self._grid = grid  # [rows][tokens]
        self._draft = draft  # [rows] seconds of one draft step
        self._curves: dict[int, tuple[list[float], float]] = {}

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        """Seconds of rounds of first, first + 1, ... tokens scored: [count], not decreasing."""
        curve, draft_s = self._curve(rows)
        return _along(curve, max(first, 1), count, draft_steps * draft_s)

    def _curve(self, rows: int) -> tuple[list[float], float]:
        """Seconds at TOKENS for this many rows, and of one draft step."""
        found = self._curves.get(rows)
        if found is None:
            low, share = locate(ROWS, min(rows, ROWS[-1]))
            pairs = zip(self._grid[low], self._grid[low + 1], strict=True)
            curve = [a + share * (b - a) for a, b in pairs]
            draft_s = self._draft[low] + share * (self._draft[low + 1] - self._draft[low])
            found = self._curves[rows] = (curve, draft_s)
        return found


def locate(knots: tuple[int, ...], at: int) -> tuple[int, float]:
    """(index of the knot at or below, share of the way to the next)."""
    low = min(bisect_right(knots, max(at, knots[0])) - 1, len(knots) - 2)
    return low, (max(at, knots[0]) - knots[low]) / (knots[low + 1] - knots[low])


def _along(curve: list[float], first: int, count: int, plus_s: float) -> list[float]:
    """Read a curve at consecutive token counts; behind its end it goes on straight."""
    seconds: list[float] = []
    at, end = first, first + count
    low, _ = locate(TOKENS, first)
    while at < end:
        slope = (curve[low + 1] - curve[low]) / (TOKENS[low + 1] - TOKENS[low])
        start = curve[low] + slope * (at - TOKENS[low]) + plus_s
        last = low == len(TOKENS) - 2
        stop = end if last else min(end, TOKENS[low + 1])
        seconds.extend([start + slope * i for i in range(stop - at)])
        at, low = stop, low if last else low + 1
    return seconds
