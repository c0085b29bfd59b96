"""Differences at near ties are told from real ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outrider.core import Completion, FinishReason, Request, SamplingParams
from outrider.engine.parity import Parity, Verdict, compare

REQUEST = Request(request_id="r", prompt_ids=(1, 2))
PLAIN = Completion(
    request_id="r", token_ids=(5, 6, 7), text="abc", finish_reason=FinishReason.LENGTH
)


def margin_at(expected: tuple[int, ...], margin: float):  # type: ignore[no-untyped-def]
    def tell(request: Request, prefix: tuple[int, ...]) -> float:
        assert request is REQUEST
        assert prefix == expected
        return margin

    return tell


def test_the_same_output_is_equal_and_asks_for_no_margin() -> None:
    found = compare(REQUEST, PLAIN, replace(PLAIN, total_s=9.0), near_tie=0.5)
    assert found.verdict is Verdict.EQUAL


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [(0.01, Verdict.NEAR_TIE), (0.5, Verdict.MISMATCH), (3, Verdict.MISMATCH)],
)
def test_the_margin_at_the_first_difference_decides(margin: float, verdict: Verdict) -> None:
    other = replace(PLAIN, token_ids=(5, 9, 1), text="axy")
    found = compare(REQUEST, PLAIN, other, near_tie=0.5, margin=margin_at((5,), margin))
    assert (found.verdict, found.position, found.margin) == (verdict, 1, margin)


def test_without_a_margin_a_difference_is_a_mismatch() -> None:
    other = replace(PLAIN, token_ids=(5, 9, 1))
    assert compare(REQUEST, PLAIN, other, near_tie=0.5).verdict is Verdict.MISMATCH


def test_a_sampled_request_has_no_near_ties() -> None:
    sampled = replace(REQUEST, params=SamplingParams(temperature=1.0))
    other = replace(PLAIN, token_ids=(5, 9, 1))
    found = compare(sampled, PLAIN, other, near_tie=0.5, margin=lambda _request, _prefix: 0.0)
    assert found.verdict is Verdict.MISMATCH


@pytest.mark.parametrize(
    "change",
    [
        {"token_ids": (5, 6)},
        {"token_ids": (5, 6, 7, 8)},
        {"finish_reason": FinishReason.STOP},
        {"stop_reason": 7},
        {"text": "abd"},
    ],
)
def test_the_same_tokens_must_end_and_read_the_same(change: dict[str, object]) -> None:
    other = replace(PLAIN, **change)  # type: ignore[arg-type]
    found = compare(REQUEST, PLAIN, other, near_tie=0.5, margin=lambda _request, _prefix: 0.0)
    assert found.verdict is Verdict.MISMATCH
    assert found.reason


def test_failures_are_hidden_in_neither_direction() -> None:
    failed = replace(PLAIN, finish_reason=FinishReason.ERROR, error="nan", token_ids=(), text="")
    aborted = replace(PLAIN, finish_reason=FinishReason.ABORT)
    assert compare(REQUEST, PLAIN, failed, near_tie=0.5).verdict is Verdict.MISMATCH
    assert "nan" in compare(REQUEST, failed, PLAIN, near_tie=0.5).reason
    assert compare(REQUEST, failed, failed, near_tie=0.5).verdict is Verdict.NOT_COMPARED
    assert compare(REQUEST, PLAIN, aborted, near_tie=0.5).verdict is Verdict.NOT_COMPARED


def test_counts_add_up_and_near_ties_are_no_mismatches() -> None:
    other = replace(PLAIN, token_ids=(5, 9, 1))
    aborted = replace(PLAIN, finish_reason=FinishReason.ABORT)
    near = compare(REQUEST, PLAIN, other, near_tie=0.5, margin=margin_at((5,), 0.1))
    found = [
        compare(REQUEST, PLAIN, PLAIN, near_tie=0.5),
        compare(REQUEST, PLAIN, other, near_tie=0.5),
        compare(REQUEST, PLAIN, aborted, near_tie=0.5),
        near,
    ]
    assert sum(map(Parity.of, found), Parity()) == Parity(compared=3, mismatches=1, near_ties=1)
