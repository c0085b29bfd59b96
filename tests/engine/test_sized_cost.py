"""Rounds are charged in the sizes they are computed in; leaving a size must be worth it."""

from __future__ import annotations

from itertools import product

import pytest

from outrider.engine.cost import CostModel
from outrider.engine.draft_length import Base, RowChance, best_lengths
from outrider.engine.sized_cost import SizedCost


class FourAtATime:
    """Sizes are multiples of four; ready for `ready`."""

    def __init__(self, ready: int) -> None:
        self.ready = ready

    def rounded(self, num_tokens: int) -> int:
        return -(-num_tokens // 4) * 4

    def is_prepared(self, num_tokens: int) -> bool:
        return self.rounded(num_tokens) == self.ready


@pytest.fixture(scope="module")
def learnt() -> CostModel:
    """10 ms and 1 ms per token; 6 ms where the size changes."""
    cost = CostModel({})
    for _ in range(40):
        for rows, tokens in product((1, 2, 4), (1, 2, 4, 8, 16, 32)):
            cost.observe(rows, tokens, 0, 0.010 + 0.001 * tokens)
            cost.observe(rows, tokens, 0, 0.016 + 0.001 * tokens, changed=True)
    return cost


def test_what_a_change_takes_is_learnt(learnt: CostModel) -> None:
    assert learnt.table.change_s == pytest.approx(0.006, rel=0.2)
    assert learnt.predict(4, 8) == pytest.approx(0.018, rel=0.05)


def test_tokens_cost_as_the_size_they_fill(learnt: CostModel) -> None:
    seconds = SizedCost(learnt.table, FourAtATime(ready=8)).predict_range(4, 4, 6, 0)
    assert seconds[1:5] == [seconds[1]] * 4  # 5 to 8 tokens
    assert seconds[1] == pytest.approx(0.018, rel=0.05)
    assert seconds[5] == pytest.approx(0.022 + 0.006, rel=0.1)  # 9 tokens: 12, a change


def test_a_weak_draft_is_not_worth_a_change_but_fills_a_size_that_is_there(
    learnt: CostModel,
) -> None:
    rows, base = [RowChance([0.5])] * 4, Base(4, 4)
    at_rest = SizedCost(learnt.table, FourAtATime(ready=4))
    drafting = SizedCost(learnt.table, FourAtATime(ready=8))
    assert best_lengths(rows, base, at_rest, 100) == [0] * 4
    assert best_lengths(rows, base, drafting, 100) == [1] * 4


def test_coming_to_rest_is_never_charged(learnt: CostModel) -> None:
    poor = [RowChance([0.1])] * 4
    drafting = SizedCost(learnt.table, FourAtATime(ready=8))
    assert best_lengths(poor, Base(4, 4), drafting, 100) == [0] * 4


def test_a_good_draft_is_worth_a_change(learnt: CostModel) -> None:
    good = [RowChance([0.95, 0.95, 0.95])] * 4
    at_rest = SizedCost(learnt.table, FourAtATime(ready=4))
    assert sum(best_lengths(good, Base(4, 4), at_rest, 100)) == 12
