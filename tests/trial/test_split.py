"""Which prompts are kept for confirmation, whatever the set."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from trial_toys import case

from outrider.config.schema import Part
from outrider.trial.case import Case
from outrider.trial.split import cases_of

NAMES = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=40)
SHARES = st.floats(0, 1)


def cases(names: list[str]) -> list[Case]:
    return [case(name, ("chat", "code", "edit")[len(name) % 3]) for name in names]


@given(NAMES, SHARES)
def test_every_case_is_in_one_part_and_each_kind_has_its_share_in_both(
    names: list[str], share: float
) -> None:
    all_ = cases(names)
    kept = cases_of(Part.CONFIRMATION, all_, share)
    tuned = cases_of(Part.TUNING, all_, share)
    assert sorted(one.name for one in (*kept, *tuned)) == sorted(names)
    wanted, got = Counter(one.kind for one in all_), Counter(one.kind for one in kept)
    assert all(abs(got[kind] - share * num) <= 0.5 + 1e-6 for kind, num in wanted.items())


@given(NAMES, st.text(min_size=1, max_size=6))
def test_a_prompt_that_is_added_moves_nothing_of_other_kinds(names: list[str], new: str) -> None:
    before, added = cases([name for name in names if name != new]), cases([new])
    kept = {one.name for one in cases_of(Part.CONFIRMATION, before, 0.5)}
    after = {one.name for one in cases_of(Part.CONFIRMATION, before + added, 0.5)}
    others = {one.name for one in before if one.kind != added[0].kind}
    assert kept & others == after & others
    assert len((kept ^ after) - {new}) <= 1


def test_the_order_of_the_file_does_not_matter() -> None:
    all_ = cases([f"n{i}" * (i % 3 + 1) for i in range(30)])
    one, two = (cases_of(Part.CONFIRMATION, some, 0.5) for some in (all_, all_[::-1]))
    assert {each.name for each in one} == {each.name for each in two}
