"""What a search is of: axes and their combinations, prompts and groups, and its confirmation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_toys import contender, drafts
from trial_toys import case

from outrider.config.folders import Folders
from outrider.config.load import load
from outrider.config.overridden import overridden
from outrider.config.schema import DrafterKind, LengthPolicy, RuleKind, SweepJob
from outrider.core import UserError
from outrider.testing import ManualClock
from outrider.trial.sweep_axes import Combination, check_heard, combinations, plain_of
from outrider.trial.sweep_confirm import confirm_command
from outrider.trial.sweep_plan import MAX_OPEN, distinct, groups, in_order, portions
from outrider.trial.sweep_record import Outcome


def combined(*axes: str, words: Sequence[str] = ()) -> list[Combination]:
    def compose(own: Sequence[str]) -> SweepJob:
        return load(SweepJob, "sweep", [*words, *own])

    return combinations(axes, Folders().groups("sweep"), compose(()), compose)


def test_every_combination_is_a_candidate_and_files_come_before_keys_in_them() -> None:
    found = combined("draft.length.max=4,8", "engine=default,ratio", "draft=ngram,fixed")
    assert len(found) == 8
    assert found[0].name == "engine=default draft=ngram draft.length.max=4"
    assert found[1].name == "engine=default draft=ngram draft.length.max=8", "the last is fastest"
    last = found[-1].job
    assert (last.draft.length.policy, last.draft.length.max) == (LengthPolicy.FIXED, 8)
    assert last.engine.rule is RuleKind.RATIO


def test_plain_decoding_is_no_candidate_whatever_its_lengths() -> None:
    found = combined("draft=none,ngram", "length.max=4,8")
    assert [one.name for one in found] == ["draft=ngram length.max=4", "draft=ngram length.max=8"]
    base = plain_of(load(SweepJob, "sweep", ["engine=ratio", "draft=fixed"]))
    assert (base.draft.drafter, base.engine.rule) == (DrafterKind.NONE, RuleKind.COUPLED)


def test_what_else_was_typed_is_where_each_candidate_starts() -> None:
    (one,) = combined("draft=fixed", words=["engine.max_rows=32", "breaker.alpha=0.05"])
    assert one.job.engine.max_rows == 32
    assert one.job.draft.breaker.alpha == 0.05


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ((), "sweep.axes is empty"),
        (("draft.length.max",), "expected"),
        (("draft.length.max=4,,8",), "expected"),
        (("draft.length.max=4,4",), "a value twice"),
        (("draft=ngram", "draft=fixed"), "draft is there twice"),
        (("draft.length.max=4,many",), "draft.length.max=many: draft.length.max: expected"),
        (("draft=model",), "draft=model: "),
        (("model.dtype=float32,bfloat16",), "model.dtype=float32 sets model"),
        (("engine.max_rows=8,16",), "engine.max_rows=8 sets engine"),
        (("temperature=0,1",), "temperature=1 sets sampling"),
        (("draft=none", "draft.length.max=1,2"), "no combination drafts"),
    ],
)
def test_what_can_not_be_searched_is_one_line_that_names_it(
    axes: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UserError) as error:
        combined(*axes)
    assert str(error.value).startswith("sweep.axes")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "word", ["part=confirmation", "trial.in_flight=[1]", "releases=[a]", "trial.part=tuning"]
)
def test_words_of_a_trial_that_a_search_would_drop_are_refused(word: str) -> None:
    heard = overridden(SweepJob, Folders().groups("sweep"), ["in_flight=2", "answer_tokens=9"])
    check_heard(heard)
    with pytest.raises(UserError, match="says nothing in a search"):
        check_heard(overridden(SweepJob, Folders().groups("sweep"), [word]))


def test_equal_releases_are_measured_once() -> None:
    clock, told = ManualClock(), list[str]()
    ones = [contender(name, drafts(clock, 1)) for name in ("a", "b", "a")]
    assert [one.name for one in distinct(ones, told.append)] == ["a", "b"]
    assert told == ["a is the same release as a: measured once"]


KINDS = st.lists(st.sampled_from(["chat", "code", "edit"]), min_size=1, max_size=40)


@given(KINDS, st.integers(1, 40))
def test_every_beginning_has_its_share_of_each_kind(kinds: list[str], num: int) -> None:
    cases = [case(f"case{index}", kind) for index, kind in enumerate(kinds)]
    ordered = in_order(cases)
    assert ordered == in_order(cases[::-1]), "whatever their order in the file"
    assert sorted(one.name for one in ordered) == sorted(one.name for one in cases)
    there, total = Counter(one.kind for one in ordered[:num]), Counter(kinds)
    for kind, count in total.items():
        others = max((there[other] for other in total if other != kind), default=0)
        assert there[kind] == count or there[kind] >= others - 1


@given(st.integers(1, 60))
def test_groups_are_as_equal_as_can_be_and_fit(num: int) -> None:
    names = [str(index) for index in range(num)]
    found = groups(names)
    assert list(chain.from_iterable(found)) == names
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert max(map(len, found)) <= MAX_OPEN
    assert len(found) == -(-num // MAX_OPEN)


@pytest.mark.parametrize(("in_flight", "num_batches"), [(1, 6), (4, 3), (8, 3)])
def test_the_work_of_a_rung_grows_with_its_prompts(in_flight: int, num_batches: int) -> None:
    cases = [case(f"case{index}") for index in range(12)]
    first = portions(cases[:6], in_flight, 1, 0)
    later = portions(cases, in_flight, 1, len(first))
    assert (len(first), len(later)) == (num_batches, 2 * num_batches)
    assert [one.number for one in [*first, *later]] == list(range(3 * num_batches))
    assert {one.name.partition("#")[0] for batch in first for one in batch.cases} == {
        one.name for one in cases[:6]
    }


GIVEN = [
    "folder=a",
    "num_passes=2",
    "model.dtype=float32",
    "model.num_threads=2",
    "tracking.uri=x:/y z",
]


def confirming(version: int | None, *words: str) -> str:
    outcome = Outcome(recommended="draft=fixed length.max=4", fingerprint="f", version=version)
    return confirm_command(outcome, overridden(SweepJob, Folders().groups("sweep"), words))


def test_the_confirmation_is_under_the_conditions_of_the_search() -> None:
    assert confirming(3) == (
        "python jobs/bench.py \"releases=['models:/outrider/3']\" part=confirmation"
    )
    said = confirming(3, *GIVEN)
    assert said.endswith("trial.num_passes=2 model.num_threads=2 'tracking.uri=x:/y z'")


def test_an_unregistered_release_is_confirmed_by_its_overrides_and_with_tracking_on() -> None:
    said = confirming(None, "tracking=off", "model.dtype=float32", "in_flight=2")
    assert said == (
        "python jobs/bench.py \"releases=['draft=fixed length.max=4']\" part=confirmation"
        " model.dtype=float32"
    )
