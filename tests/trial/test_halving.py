"""Successive halving as properties: whatever is measured, it ends, and the best gets through."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from outrider.trial.halving import Fate, Halving, Rung, Score, winner
from outrider.trial.record import Ratio

RULES = st.builds(
    Halving,
    keep_ratio=st.floats(0.05, 0.95),
    first_prompts=st.integers(1, 30),
    all_prompts=st.integers(1, 60),
)
SPEEDS = st.lists(st.floats(0.25, 4.0), min_size=1, max_size=20)


def score(value: float, spread: float = 0.1, failure_ratio: float = 0.0) -> Score:
    ratio = Ratio(value=value, low=value - spread, high=value + spread, num_pairs=6)
    return Score(speedup=ratio, failure_ratio=failure_ratio)


def search(rules: Halving, scores: dict[str, Score]) -> list[tuple[Rung, dict[str, Fate]]]:
    """Every rung with its fates, each candidate scoring the same in all of them."""
    rung: Rung | None = rules.first(tuple(scores))
    walked = []
    while rung is not None:
        fates = rules.fates(rung, {name: scores[name] for name in rung.candidates})
        walked.append((rung, fates))
        rung = rules.after(rung, fates)
    return walked


def named(speeds: list[float]) -> dict[str, Score]:
    return {f"c{index}": score(value) for index, value in enumerate(speeds)}


@given(RULES, SPEEDS)
def test_each_rung_has_fewer_candidates_and_more_prompts(
    rules: Halving, speeds: list[float]
) -> None:
    rungs = [rung for rung, _ in search(rules, named(speeds))]
    for before, after in pairwise(rungs):
        assert after.number == before.number + 1
        assert set(after.candidates) < set(before.candidates)
        assert before.num_prompts < after.num_prompts <= rules.all_prompts
    assert rungs[0].candidates == tuple(named(speeds))


@given(RULES, SPEEDS)
def test_the_best_gets_through_and_wins_unless_plain_decoding_is_as_fast(
    rules: Halving, speeds: list[float]
) -> None:
    scores = named(speeds)
    best = max(speeds)
    walked = search(rules, scores)
    last, fates = walked[-1]
    if best > 1.0:
        assert winner(fates) == f"c{speeds.index(best)}", "the first of equally fast ones"
        assert last.num_prompts == rules.all_prompts, "what is recommended was measured on all"
        assert all(f"c{speeds.index(best)}" in rung.candidates for rung, _ in walked)
    else:
        assert winner(fates) is None


@given(RULES, SPEEDS)
def test_the_cost_is_bounded(rules: Halving, speeds: list[float]) -> None:
    """A rung costs what the first did, but for rounding, and all of them less than everything."""
    rungs = [rung for rung, _ in search(rules, named(speeds))]
    costs, before = [], 0
    for rung in rungs:
        costs.append(len(rung.candidates) * (rung.num_prompts - before))
        before = rung.num_prompts
    assert sum(costs) <= len(speeds) * rules.all_prompts
    for one, two in pairwise(rungs):
        keep = rules.keep_ratio
        assert len(two.candidates) <= len(one.candidates) * keep + 1
        assert len(two.candidates) == 1 or two.num_prompts <= one.num_prompts / keep + 1
    factor = math.log(1 / rules.keep_ratio)
    assert len(rungs) <= 3 + math.log(rules.all_prompts) / factor


def test_surely_slower_ones_and_failing_ones_are_dropped_at_once() -> None:
    rules = Halving(keep_ratio=0.9, first_prompts=6, all_prompts=24)
    scores = {
        "failing": score(3.0, failure_ratio=0.1),
        "slow": score(0.8),
        "unclear": score(0.95),
        "silent": Score(speedup=None, failure_ratio=1.0),
        "good": score(1.5),
    }
    fates = rules.fates(rules.first(tuple(scores)), scores)
    assert list(fates.values()) == [Fate.FAILED, Fate.SLOWER, Fate.KEPT, Fate.FAILED, Fate.KEPT]


def test_the_fastest_is_dropped_where_its_answers_are_not_those_of_plain_decoding() -> None:
    rules = Halving(keep_ratio=0.9, first_prompts=6, all_prompts=24, max_mismatches=1)
    scores = {
        "wrong": replace(score(3.0), num_mismatches=2),
        "allowed": replace(score(1.2), num_mismatches=1),
    }
    fates = rules.fates(rules.first(tuple(scores)), scores)
    assert list(fates.values()) == [Fate.WRONG, Fate.KEPT]


def test_a_few_pairs_drop_nobody_by_themselves() -> None:
    rules = Halving(keep_ratio=0.5, first_prompts=3, all_prompts=24)
    few = Score(speedup=Ratio(value=0.9, low=0.8, high=0.99, num_pairs=3))
    fates = rules.fates(rules.first(("a", "b")), {"a": few, "b": few})
    assert fates == {"a": Fate.KEPT, "b": Fate.BEHIND}


def test_no_gain_on_all_prompts_is_plain_decoding() -> None:
    rules = Halving(keep_ratio=0.5, first_prompts=6, all_prompts=24)
    scores = {"a": score(1.0), "b": score(0.97)}
    walked = search(rules, scores)
    assert [rung.num_prompts for rung, _ in walked] == [6, 24]
    assert walked[0][1] == {"a": Fate.KEPT, "b": Fate.BEHIND}
    assert walked[1][1] == {"a": Fate.NO_GAIN}
    assert winner(walked[-1][1]) is None


def test_the_default_search_doubles_its_prompts() -> None:
    rules = Halving(keep_ratio=0.5, first_prompts=6, all_prompts=24)
    walked = search(rules, named([1.1, 1.2, 1.3, 1.4, 1.5, 1.6]))
    sizes = [(len(rung.candidates), rung.num_prompts) for rung, _ in walked]
    assert sizes == [(6, 6), (3, 12), (2, 24)]
    assert winner(walked[-1][1]) == "c5"
