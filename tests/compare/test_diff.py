"""Two releases: how a user may name them, which keys differ, what it did to figures."""

import pytest
from toy_trial import FIXED, NGRAM, ToyContender, record_trial

from outrider.compare.candidate import Candidate, candidates
from outrider.compare.choice import Choice, choose
from outrider.compare.diff import Diff, diff
from outrider.core import UserError
from outrider.testing import MemoryHistory, MemoryRegistry, MemoryTracker
from outrider.tracking.registry import Alias


class Store:
    """One trial of two releases; version 2 is the champion."""

    def __init__(self) -> None:
        self.tracker = MemoryTracker()
        self.registry = MemoryRegistry()
        record_trial(self.tracker, self.registry)
        self.registry.give(Alias.CHAMPION, 2)

    @property
    def candidates(self) -> list[Candidate]:
        runs = MemoryHistory(self.tracker).runs(("contender",))
        return candidates(runs, self.registry.versions())

    def choose(self, word: str) -> Choice:
        return choose(word, self.candidates, self.registry.versions(), "compare.releases")

    def diff(self, old: str, new: str) -> Diff:
        return diff(self.choose(old), self.choose(new), NGRAM.settings, FIXED.settings)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.mark.parametrize("word", ["models:/outrider@champion", "models:/outrider/2", "2"])
def test_a_release_is_named_by_alias_or_number(store: Store, word: str) -> None:
    found = store.choose(word)
    assert found.title == "models:/outrider/2 (champion)"
    assert {one.name for one in found.candidates} == {NGRAM.name}


def test_a_release_is_named_by_a_contender_or_a_run(store: Store) -> None:
    by_name = store.choose(NGRAM.name)
    assert [one.in_flight for one in by_name.candidates] == ["8", "1"]
    run = by_name.candidates[1].run
    assert [one.run for one in store.choose(run.run_id).candidates] == [run]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("draft=ngrm", "is called 'draft=ngrm'; near it: draft=ngram"),
        ("models:/outrider/9", "there are 1, 2 (champion), 3"),
        ("models:/outrider@challenger", "no release has that alias"),
        ("models:/other/1", "is written models:/outrider@champion or models:/outrider/3"),
    ],
)
def test_an_unknown_release_is_one_line_with_what_there_is(
    store: Store, word: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        store.choose(word)
    assert said in str(caught.value)


def test_keys_that_differ_are_shown_with_both_values(store: Store) -> None:
    (change,) = store.diff("2", "3").keys
    assert (change.key, change.old, change.new) == ("draft.length.max", "15", "4")


def test_a_key_that_only_one_has_is_absent_in_the_other(store: Store) -> None:
    old = diff(store.choose("2"), store.choose("3"), {"draft": {"x": 1}}, {"draft": {}})
    assert [(change.key, change.old) for change in old.keys if change.key == "draft.x"] == [
        ("draft.x", "1")
    ]


def test_every_figure_of_both_is_compared_for_each_number_in_flight(store: Store) -> None:
    one, eight = store.diff("2", "3").blocks
    assert (one.in_flight, eight.in_flight) == ("1", "8")
    found = {figure.name: figure for figure in one.figures}
    assert found["speedup_ratio"].change_ratio == pytest.approx(0.8 / 1.4 - 1)
    assert found["speedup_ratio"].overlaps is False
    assert found["tokens_per_s"].overlaps is None  # it has no interval
    assert "speedup_ratio/code" in found
    assert "speedup_ratio_low" not in found
    assert "acceptance_ratio" not in found  # the same in both
    assert one.num_equal > 0


def test_intervals_that_share_a_value_overlap() -> None:
    store = Store()
    like = ToyContender(name="like", speedup=1.42, settings={"draft.length.max": 16})
    record_trial(store.tracker, store.registry, [NGRAM, like])
    block = store.diff(NGRAM.name, "like").blocks[0]
    assert {f.name: f.overlaps for f in block.figures}["speedup_ratio"] is True


def test_a_trial_that_has_both_goes_before_a_newer_one_that_has_one(store: Store) -> None:
    assert all(block.is_one_trial for block in store.diff("2", "3").blocks)
    record_trial(store.tracker, store.registry, [NGRAM])
    assert all(block.is_one_trial for block in store.diff("2", "3").blocks)


def test_figures_of_different_trials_are_told_apart() -> None:
    store = Store()
    other = ToyContender(name="other", speedup=2.0)
    record_trial(store.tracker, store.registry, [other])
    assert not any(block.is_one_trial for block in store.diff("2", "other").blocks)
