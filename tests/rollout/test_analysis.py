"""From a step's requests to verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CANDIDATE, STABLE, compared, failed, sample, seen, varied

from outrider.config.schema import GateSettings
from outrider.rollout.analysis import judge
from outrider.rollout.phase import Phase
from outrider.rollout.sums import Sums
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.serving.sample import Sample

GATES = GateSettings()
PASS, FAIL, INCONCLUSIVE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


def canary(sums: Sums, gates: GateSettings = GATES) -> Judgement:
    return judge(sums, gates, phase=Phase.CANARY, num_stages=3)


def shadow(sums: Sums, gates: GateSettings = GATES) -> Judgement:
    return judge(sums, gates, phase=Phase.SHADOW, num_stages=3)


def of(judgement: Judgement, figure: str, group: str = "") -> Finding:
    (found,) = (one for one in judgement.findings if (one.figure, one.group) == (figure, group))
    return found


def both(num: int, slowness: float = 1.0, **changes: Any) -> list[Sample]:
    """`num` requests of each arm, the candidate's slower by a factor."""
    return varied(STABLE, num, **changes) + varied(CANDIDATE, num, slowness, **changes)


def test_no_data_is_inconclusive_in_every_phase() -> None:
    assert shadow(Sums()).verdict is INCONCLUSIVE
    assert canary(Sums()).verdict is INCONCLUSIVE
    assert judge(Sums(), GATES, phase=Phase.KEEPING, num_stages=3) == Judgement()


def test_a_candidate_as_good_as_stable_passes_every_gate() -> None:
    judgement = canary(seen(both(3000)))
    assert judgement.verdict is PASS, judgement.reason
    assert len(judgement.findings) == 7


def test_a_candidate_that_is_surely_slower_fails_and_says_by_how_much() -> None:
    judgement = canary(seen(both(600, slowness=1.4)))
    assert judgement.verdict is FAIL
    found = of(judgement, "tokens_per_s")
    assert found.verdict is FAIL
    assert found.estimate == pytest.approx(1 / 1.4, rel=0.05)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.estimate < found.high < 0.95
    assert found.reason == (
        f"tokens per second {found.estimate:.3g} of stable's ({found.low:.3g} to "
        f"{found.high:.3g}, 600 requests against 600); at least 0.95"
    )


def test_what_few_requests_show_is_inconclusive_however_bad_it_looks() -> None:
    assert canary(seen(both(10, slowness=3.0))).verdict is INCONCLUSIVE


def test_one_error_in_three_requests_neither_fails_nor_passes() -> None:
    requests = varied(STABLE, 60) + varied(CANDIDATE, 2) + failed(CANDIDATE, 1)
    found = of(canary(seen(requests)), "failure_ratio")
    assert found.verdict is INCONCLUSIVE
    assert "3 requests against 60" in found.reason


def test_a_candidate_that_clearly_fails_more_requests_fails() -> None:
    requests = varied(STABLE, 200) + varied(CANDIDATE, 20) + failed(CANDIDATE, 10)
    assert of(canary(seen(requests)), "failure_ratio").verdict is FAIL


def test_errors_of_both_arms_alike_fail_nobody() -> None:
    requests = both(300) + failed(STABLE, 300) + failed(CANDIDATE, 300)
    assert of(canary(seen(requests)), "failure_ratio").verdict is INCONCLUSIVE


def test_a_candidate_that_does_not_draft_has_no_acceptance_and_does_not_fail_by_it() -> None:
    plain = varied(CANDIDATE, 500, drafted=0, accepted=0, mode="plain")
    found = of(canary(seen(varied(STABLE, 500) + plain)), "draft_acceptance_ratio")
    assert (found.verdict, found.counts, found.estimate) == (INCONCLUSIVE, True, None)
    assert "0 requests against 500" in found.reason


def test_a_figure_that_stable_does_not_have_holds_nothing_up() -> None:
    plain = varied(STABLE, 3000, drafted=0, accepted=0, num_rounds=32, mode="plain")
    judgement = canary(seen(plain + varied(CANDIDATE, 3000)))
    found = of(judgement, "draft_acceptance_ratio")
    assert (found.verdict, found.counts) == (INCONCLUSIVE, False)
    assert judgement.verdict is PASS, judgement.reason


def test_a_drafter_that_guesses_worse_fails_by_acceptance_also_where_it_never_hits() -> None:
    for accepted in (12, 0):
        worse = varied(CANDIDATE, 400, accepted=accepted)
        found = of(canary(seen(varied(STABLE, 400) + worse)), "draft_acceptance_ratio")
        assert found.verdict is FAIL
        assert found.estimate == pytest.approx(accepted / 20, abs=0.03)


def test_plain_releases_whose_rounds_never_differ_pass_by_tokens_per_round() -> None:
    same = [sample(arm, num_rounds=32) for arm in (STABLE, CANDIDATE) for _ in range(200)]
    assert of(canary(seen(same)), "tokens_per_round").verdict is PASS


def test_a_gate_that_is_off_is_not_judged_and_leaves_the_others_more_room() -> None:
    sums = seen(both(300, slowness=1.3))
    alone = replace(
        GATES,
        min_acceptance_ratio=0.0,
        min_tokens_per_round_ratio=0.0,
        max_first_token_ratio=0.0,
        max_inter_token_ratio=0.0,
        max_total_ratio=0.0,
    )
    assert {one.figure for one in canary(sums, alone).findings} == {
        "failure_ratio",
        "tokens_per_s",
    }
    lone, crowded = of(canary(sums, alone), "tokens_per_s"), of(canary(sums), "tokens_per_s")
    assert (lone.high or 0) < (crowded.high or 0)


def test_a_big_kind_that_is_worse_fails_though_all_together_do_not() -> None:
    requests = both(4000, kind="chat") + both(400, slowness=1.5, kind="code")
    judgement = canary(seen(requests))
    assert of(judgement, "tokens_per_s").verdict is not FAIL
    found = of(judgement, "tokens_per_s", "code")
    assert found.verdict is FAIL
    assert found.reason.startswith("tokens per second (code) 0.6")
    assert judgement.verdict is FAIL


def test_a_big_kind_that_is_inconclusive_is_told_and_holds_nothing_up() -> None:
    judgement = canary(seen(both(3000, kind="chat") + both(250, slowness=1.02, kind="code")))
    found = of(judgement, "tokens_per_s", "code")
    assert (found.verdict, found.counts) == (INCONCLUSIVE, False)
    assert judgement.verdict is PASS, judgement.reason


@given(st.lists(st.sampled_from(["chat", "code", "maths"]), max_size=3, unique=True))
@settings(max_examples=8)
def test_kinds_that_are_too_small_change_nothing(kinds: list[str]) -> None:
    plain = both(50)
    labelled = [
        replace(one, kind=(kinds or [""])[number % max(len(kinds), 1)])
        for number, one in enumerate(plain)
    ]
    assert canary(seen(labelled)) == canary(seen(plain))


@given(
    st.integers(0, 80),
    st.integers(0, 80),
    st.floats(0.3, 3.0),
    st.integers(0, 20),
    st.sampled_from([0.5, 0.95, 0.0]),
)
@settings(max_examples=40, deadline=None)
def test_verdicts_follow_from_the_interval_and_the_bound(
    num: int, num_stable: int, slowness: float, num_failed: int, floor: float
) -> None:
    requests = varied(STABLE, num_stable) + varied(CANDIDATE, num, slowness)
    gates = replace(GATES, min_speed_ratio=floor, max_error_increase=0.2)
    judgement = canary(seen(requests + failed(CANDIDATE, num_failed)), gates)
    for one in judgement.findings:
        if one.low is None or one.high is None or one.estimate is None:
            assert one.verdict is INCONCLUSIVE
            continue
        assert one.low <= one.estimate <= one.high
        is_floor = one.figure in {"tokens_per_s", "draft_acceptance_ratio", "tokens_per_round"}
        fails = one.high < one.bound if is_floor else one.low > one.bound
        passes = one.low >= one.bound if is_floor else one.high <= one.bound
        assert not (fails and passes)
        assert one.verdict is (FAIL if fails else PASS if passes else INCONCLUSIVE)


def test_a_shadow_is_judged_by_answers_and_errors_and_not_by_its_times() -> None:
    slow = varied(CANDIDATE, 400, 5.0, is_shadow=True)
    judgement = shadow(seen(varied(STABLE, 400) + slow, compared(same=390, near_tie=10)))
    assert {one.figure for one in judgement.findings} == {"num_mismatches", "failure_ratio"}
    assert judgement.verdict is PASS, judgement.reason


def test_one_mismatch_fails_unless_it_is_allowed() -> None:
    sums = seen(varied(STABLE, 50), compared(same=30, near_tie=2, mismatch=1))
    found = of(shadow(sums), "num_mismatches")
    assert found.verdict is FAIL
    assert found.reason == "1 of 33 mirrored answers differ, 2 near ties apart; at most 0"
    allowed = shadow(sums, replace(GATES, max_mismatches=1))
    assert of(allowed, "num_mismatches").verdict is PASS


def test_answers_that_could_not_be_compared_are_no_data() -> None:
    found = of(shadow(seen(varied(STABLE, 50), compared(uncompared=40))), "num_mismatches")
    assert found.verdict is INCONCLUSIVE
    assert found.reason == "none of 40 mirrored answers could be compared; at most 0"


def test_a_canary_without_mirrored_answers_is_not_held_up_by_them() -> None:
    figures = {one.figure for one in canary(seen(both(30))).findings}
    assert "num_mismatches" not in figures
    judgement = canary(seen(both(30), compared(mismatch=1)))
    assert of(judgement, "num_mismatches").verdict is FAIL
