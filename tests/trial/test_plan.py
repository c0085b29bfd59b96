"""Portions of prompts."""

from __future__ import annotations

from collections import Counter

import pytest
from trial_toys import cases

from outrider.trial.plan import MIN_BATCHES, batches, warmup


def test_one_at_a_time_every_prompt_is_a_batch_of_its_own_in_each_pass() -> None:
    plan = batches(cases(6), 1, 2)
    assert [len(batch.cases) for batch in plan] == [1] * 12
    assert set(Counter(batch.cases[0].name for batch in plan).values()) == {2}


@pytest.mark.parametrize(("num", "in_flight"), [(24, 8), (5, 8), (100, 2), (3, 16)])
def test_batches_are_full_mixed_and_enough_for_an_interval(num: int, in_flight: int) -> None:
    plan = batches(cases(num), in_flight, 1)
    assert len(plan) >= MIN_BATCHES
    assert {len(batch.cases) for batch in plan} == {2 * in_flight}
    assert [batch.number for batch in plan] == list(range(len(plan)))
    for batch in plan:
        assert len({case.name for case in batch.cases}) == len(batch.cases)
        assert {case.kind for case in batch.cases} == {"chat", "edit"}
    counts = Counter(case.name.partition("#")[0] for batch in plan for case in batch.cases)
    assert len(counts) == num
    assert max(counts.values()) - min(counts.values()) <= 1


def test_the_warm_up_has_each_kind_and_fills_the_rows() -> None:
    assert {case.kind for case in warmup(cases(4), 1).cases} == {"chat", "edit"}
    assert len(warmup(cases(4), 8).cases) == 8
