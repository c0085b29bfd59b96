"""What is kept of a step's requests."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CANDIDATE, STABLE, compared, failed, reading, sample, seen, varied

from outrider.rollout.sums import MOST_KEPT, MOST_KINDS, Side, Sums
from outrider.serving.sample import Likeness, Sample
from outrider.serving.split import Arm

SAMPLES = st.builds(
    Sample,
    arm=st.sampled_from(Arm),
    kind=st.sampled_from(["", "chat", "code"]),
    is_shadow=st.booleans(),
    error=st.sampled_from(["", "timeout"]),
    finish_reason=st.sampled_from(["stop", "length"]),
    num_tokens=st.integers(0, 500),
    num_rounds=st.integers(0, 500),
    drafted=st.integers(0, 900),
    queue_s=st.none() | st.floats(0, 100),
    first_token_s=st.none() | st.floats(0, 1e4),
    total_s=st.floats(0, 1e5),
)


@given(st.lists(SAMPLES, max_size=30))
@settings(max_examples=60)
def test_sums_come_back_from_json_as_they_were(samples: list[Sample]) -> None:
    sums = seen(samples, compared(same=2, mismatch=1, uncompared=1), num_lost=3)
    assert Sums.from_dict(json.loads(json.dumps(sums.to_dict(), allow_nan=False))) == sums


@given(st.lists(SAMPLES, max_size=30), st.integers(0, 30))
@settings(max_examples=60)
def test_it_does_not_matter_in_how_many_readings_requests_came(
    samples: list[Sample], cut: int
) -> None:
    parts = seen(samples[:cut]).after(reading(samples[cut:]))
    whole = seen(samples)
    for side in Side:
        mine, theirs = parts.of(side), whole.of(side)
        assert mine.num_requests == theirs.num_requests
        assert mine.histograms == theirs.histograms
        assert mine.finish_reasons == theirs.finish_reasons
        for name, one in theirs.moments.items():
            assert mine.moments_of(name).num == one.num
            assert mine.moments_of(name).mean == pytest.approx(one.mean, abs=1e-9)


def test_a_reading_makes_new_sums_and_leaves_the_old_ones_alone() -> None:
    before = seen([sample(STABLE)])
    after = before.after(reading([sample(STABLE), sample(CANDIDATE)]))
    assert (before.num(STABLE), before.num(CANDIDATE)) == (1, 0)
    assert (after.num(STABLE), after.num(CANDIDATE)) == (2, 1)


def test_a_failed_request_counts_as_failed_and_for_nothing_else() -> None:
    tally = seen([sample(STABLE), *failed(STABLE, 2, total_s=900.0)]).of(Side.STABLE)
    assert (tally.num_requests, tally.num_failed) == (3, 2)
    assert {one.num for one in tally.moments.values()} == {1}
    assert tally.finish_reasons == {"stop": 1, "error": 2}


def test_a_mirrored_request_is_no_request_of_an_arm() -> None:
    sums = seen([sample(CANDIDATE, is_shadow=True, kind="chat")], compared(same=1))
    assert sums.num(CANDIDATE) == 0
    assert sums.num_shadow == 1
    assert not sums.kinds


def test_a_request_that_did_not_draft_has_no_acceptance_and_one_without_stream_no_first_token() -> (
    None
):
    tally = seen([sample(STABLE, drafted=0, accepted=0, first_token_s=None)]).of(Side.STABLE)
    assert "draft_acceptance_ratio" not in tally.moments
    assert "first_token_s" not in tally.moments
    assert tally.moments_of("tokens_per_round").num == 1


def test_kinds_are_bounded_and_late_ones_are_in_the_total() -> None:
    sums = seen([sample(STABLE, kind=f"k{number}") for number in range(MOST_KINDS + 5)])
    assert list(sums.kinds) == [f"k{number}" for number in range(MOST_KINDS)]
    assert sums.num(STABLE) == MOST_KINDS + 5
    later = sums.after(reading([sample(CANDIDATE, kind="k3"), sample(CANDIDATE, kind="late")]))
    assert later.of(Side.CANDIDATE, "k3").num_requests == 1
    assert "late" not in later.kinds


def test_of_the_comparisons_that_differ_a_few_are_kept_mismatches_first() -> None:
    sums = seen((), compared(near_tie=MOST_KEPT, same=5)).after(reading((), compared(mismatch=2)))
    assert len(sums.differing) == MOST_KEPT
    assert [one.likeness for one in sums.differing[:3]] == [
        Likeness.MISMATCH,
        Likeness.MISMATCH,
        Likeness.NEAR_TIE,
    ]
    assert (sums.num_compared, sums.num_mismatches) == (MOST_KEPT + 7, 2)


def test_what_was_lost_is_counted_since_the_step_began_and_over_a_restart() -> None:
    sums = seen(num_lost=10).after(reading(num_lost=12, num_over_limit=1))
    sums = sums.after(reading(epoch="b", num_lost=4))
    told = sums.figures()
    assert (told["num_lines_lost"], told["num_over_limit"]) == (6, 1)


def test_percentiles_are_within_a_bin_of_the_true_ones() -> None:
    requests = varied(STABLE, 2000)
    told = seen(requests).figures()
    cuts = statistics.quantiles((one.total_s for one in requests), n=100)
    assert told["total_s_p50/stable"] == pytest.approx(cuts[49], rel=0.09)
    assert told["total_s_p95/stable"] == pytest.approx(cuts[94], rel=0.09)
    assert told["num_requests/stable:stop"] == 2000
    assert told["draft_acceptance_ratio/stable"] == pytest.approx(0.5, abs=0.02)
