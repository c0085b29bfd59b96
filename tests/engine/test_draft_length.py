"""The length rule is the optimum of expected tokens over seconds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.draft_length import (
    Base,
    Prices,
    RowChance,
    assess,
    best_lengths,
    fixed_lengths,
)

UNLIMITED = 1 << 30


@dataclass(frozen=True)
class Curve:
    """A toy machine: seconds by tokens scored, and per draft step."""

    base_s: float = 0.02
    token_s: tuple[float, ...] = (0.001,)  # of the 1st, 2nd, ... token; the last one repeats
    step_s: float = 0.0

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        return [self.at(tokens, draft_steps) for tokens in range(first, first + count)]

    def at(self, tokens: int, draft_steps: int) -> float:
        costs = (self.token_s[min(i, len(self.token_s) - 1)] for i in range(tokens))
        return self.base_s + sum(costs) + self.step_s * draft_steps


CHANCES = st.lists(st.floats(0.0, 1.0), max_size=4).map(tuple)
SMALL = st.integers(0, 2)
ROWS = st.lists(st.builds(RowChance, CHANCES, SMALL, SMALL, SMALL, SMALL), min_size=1, max_size=3)
CURVES = st.builds(
    Curve,
    st.floats(0.001, 0.1),
    st.lists(st.floats(0.0, 0.02), min_size=1, max_size=8).map(tuple),
    st.floats(0.0, 0.02),
)


@settings(deadline=None, max_examples=300)
@given(ROWS, CURVES, st.integers(0, 12), st.integers(0, 20))
def test_no_vector_of_lengths_beats_the_rule(
    rows: list[RowChance], cost: Curve, budget: int, prefill: int
) -> None:
    base = Base(len(rows) + bool(prefill), len(rows) + prefill)
    chosen = best_lengths(rows, base, cost, budget, least_gain=0.0)
    assert sum(chosen) <= budget
    every = itertools.product(*(range(row.limit + 1) for row in rows))
    best = max(
        assess(rows, lengths, base, cost).spec_goodput
        for lengths in every
        if sum(lengths) <= budget
    )
    assert assess(rows, chosen, base, cost).spec_goodput == pytest.approx(best)


@settings(deadline=None)
@given(ROWS, CURVES)
def test_the_rule_never_promises_less_than_plain_decoding(
    rows: list[RowChance], cost: Curve
) -> None:
    """What was run to make offers is owed by both."""
    base, none = Base(len(rows), len(rows)), [0] * len(rows)
    decision = assess(rows, best_lengths(rows, base, cost, UNLIMITED), base, cost)
    assert decision.spec_goodput >= assess(rows, none, base, cost).spec_goodput * (1.0 - 1e-12)
    free = [replace(row, num_run=0) for row in rows]
    decision = assess(free, best_lengths(free, base, cost, UNLIMITED), base, cost)
    assert decision.spec_goodput >= decision.plain_goodput * (1.0 - 1e-12)


def test_nothing_is_drafted_where_nothing_is_offered() -> None:
    rows = [RowChance(()), RowChance((), 1)]
    assert best_lengths(rows, Base(2, 2), Curve(), UNLIMITED) == [0, 0]


def test_hopeless_slots_are_not_spent_even_if_they_look_free() -> None:
    free = Curve(token_s=(0.0,))
    rows = [RowChance((0.001,) * 8), RowChance((0.9,) * 8)]
    assert best_lengths(rows, Base(2, 2), free, UNLIMITED) == [0, 8]


def test_a_friendly_and_a_hostile_row_get_their_own_lengths() -> None:
    """E18."""
    rows = [RowChance((0.95,) * 8), RowChance((0.05,) * 8)]
    lengths = best_lengths(rows, Base(2, 2), Curve(), UNLIMITED)
    assert lengths[0] >= 6
    assert lengths[1] == 0


def test_dearer_tokens_shorten_drafts() -> None:
    row, base = [RowChance((0.8,) * 15)], Base(1, 1)
    by_cost = [
        best_lengths(row, base, Curve(token_s=(cost,)), UNLIMITED)[0]
        for cost in (0.0001, 0.001, 0.003, 0.3)
    ]
    assert by_cost == sorted(by_cost, reverse=True)
    assert by_cost[0] > by_cost[-1] == 0


def test_draft_steps_are_paid_by_the_deepest_row() -> None:
    cost = Curve(token_s=(0.0001,), step_s=0.01)
    alone = best_lengths([RowChance((0.9,) * 8, 1)], Base(1, 1), cost, UNLIMITED)
    look_up = best_lengths([RowChance((0.9,) * 8, 0)], Base(1, 1), cost, UNLIMITED)
    together = best_lengths([RowChance((0.9,) * 8, 1)] * 8, Base(8, 8), cost, UNLIMITED)
    assert alone[0] < look_up[0]
    assert len(set(together)) == 1


def test_prefill_in_a_round_does_not_make_drafting_look_cheap() -> None:
    row, cost = [RowChance((0.3,) * 8)], Curve(token_s=(0.01,))
    assert best_lengths(row, Base(1, 1), cost, UNLIMITED) == [0]
    assert best_lengths(row, Base(2, 400), cost, UNLIMITED) == [0]


def test_a_decision_says_what_it_expects() -> None:
    cost = Curve(base_s=0.02, token_s=(0.001,))
    decision = assess([RowChance((0.5, 0.5))], [2], Base(1, 1), cost)
    assert decision.lengths == (2,)
    assert decision.expected_tokens == pytest.approx(1.75)
    assert decision.expected_s == pytest.approx(0.023)
    assert decision.plain_goodput == pytest.approx(1 / 0.021)
    assert decision.spec_goodput == pytest.approx(1.75 / 0.023)


def test_fixed_lengths_are_the_limits_cut_to_one_length_by_the_budget() -> None:
    assert fixed_lengths([4, 0, 2], UNLIMITED) == [4, 0, 2]
    assert fixed_lengths([4, 0, 2, 4], 8) == [3, 0, 2, 3]
    assert fixed_lengths([4, 4], 1) == [0, 0]
    assert fixed_lengths([], 5) == []


def test_a_step_that_was_run_is_no_reason_against_the_token_that_it_told() -> None:
    """A forward as dear as two tokens: it pays no more, but what it has told costs nothing."""
    cost, base = Curve(base_s=0.02, token_s=(0.001,), step_s=0.04), Base(1, 1)
    assert best_lengths([RowChance([0.6, 0.6], 1)], base, cost, UNLIMITED) == [0]
    told = RowChance([0.6, 0.6], 1, num_run=1, num_seen=1)
    assert best_lengths([told], base, cost, UNLIMITED) == [1]
    decision = assess([told], [1], base, cost)
    assert decision.expected_s == pytest.approx(0.02 + 2 * 0.001 + 0.04)
    assert decision.plain_goodput == pytest.approx(1 / 0.021), "without the step"


def test_what_the_first_token_takes_besides_is_paid_by_a_draft_of_any_length() -> None:
    chance = RowChance([0.6, 0.6], 1, num_first=2)
    assert [chance.steps(length) for length in range(3)] == [0, 3, 4]


def test_an_offer_is_worth_what_its_best_length_gains_less_its_price() -> None:
    """Of ten rows: a slot costs a twentieth of the round each, a step half a round for all."""
    cost = Curve(base_s=0.010, token_s=(0.001,), step_s=0.010)
    prices = Prices.at(Base(10, 10), cost)
    assert prices.slot == pytest.approx(0.5)
    assert prices.step == pytest.approx(0.5)
    assert prices.worth(RowChance([0.9, 0.8, 0.1])) == pytest.approx(0.9 + 0.72 - 2 * 0.5)
    assert prices.worth(RowChance([0.9, 0.8], 1, num_run=7, num_seen=1)) == pytest.approx(0.4)
    assert prices.worth(RowChance([0.4])) == prices.worth(RowChance([])) == 0.0


@given(CHANCES, CURVES)
def test_alone_an_offer_is_worth_something_where_the_rule_drafts_and_only_there(
    chances: tuple[float, ...], cost: Curve
) -> None:
    flat, base = replace(cost, token_s=cost.token_s[:1]), Base(1, 1)
    chance = RowChance(chances, 1)
    drafts = best_lengths([chance], base, flat, UNLIMITED, least_gain=0.0) != [0]
    worth = Prices.at(base, flat).worth(chance)
    assert drafts == (worth > 0.0) or worth < 1e-9  # rounding, where it is neither good nor bad
