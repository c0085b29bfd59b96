"""A graph keeps its size while that is cheaper than changing it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.runtimes.round_size import RoundSize


def test_small_rounds_are_all_of_one_size() -> None:
    size = RoundSize()
    assert [size.fit(n) for n in (1, 6, 2, 1, 5)] == [6] * 5


def test_a_larger_round_is_never_cut() -> None:
    assert RoundSize().fit(200) == 200


def test_a_little_less_stays_until_the_waste_equals_a_change() -> None:
    size = RoundSize()
    assert [size.fit(n) for n in (12, 10, 10, 10, 10, 12)] == [12, 12, 12, 12, 10, 12]


def test_behind_a_prompt_the_size_comes_down_at_once() -> None:
    size = RoundSize()
    assert [size.fit(n) for n in (200, 1)] == [200, 6]


@given(st.lists(st.integers(1, 64), max_size=60))
def test_every_round_fits_and_little_is_wasted_between_changes(rounds: list[int]) -> None:
    size, waste, before = RoundSize(), 0, 6
    for num_tokens in rounds:
        fitted = size.fit(num_tokens)
        assert fitted >= num_tokens
        waste = 0 if fitted != before else waste + fitted - max(num_tokens, 6)
        assert waste <= 6
        before = fitted
