"""Rounds come in few sizes, none smaller than what it has to hold."""

from __future__ import annotations

from outrider.engine.runtimes.round_size import round_size


def test_small_rounds_are_all_of_one_size() -> None:
    assert {round_size(n) for n in range(1, 7)} == {6}


def test_a_round_is_never_cut_and_little_is_added() -> None:
    for n in range(1, 2000):
        assert n <= round_size(n) <= max(n + n // 3, 6)


def test_sizes_are_their_own_size_and_few() -> None:
    sizes = {round_size(n) for n in range(1, 129)}
    assert all(round_size(size) == size for size in sizes)
    assert len(sizes) == 16
