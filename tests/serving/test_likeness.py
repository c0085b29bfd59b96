"""Mirrored tokens are those that were sent, or a near tie tells them apart, or they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outrider.core import Counters, Mode, SamplingParams
from outrider.engine.noise import Purpose, exponential
from outrider.openai.answer import TokenText
from outrider.openai.call import Call, Endpoint
from outrider.serving.likeness import compare, is_comparable, with_rivals
from outrider.serving.messages import Begun, Ended, Piece
from outrider.serving.sample import Comparison, Likeness
from outrider.serving.transcript import Transcript

NUM_PROMPT = 4


def call(**fields: Any) -> Call:
    params = fields.pop("params", SamplingParams())
    return Call(call_id="c", endpoint=Endpoint.TEXT, prompts=("x",), params=params, **fields)


def transcript(
    token_ids: tuple[int, ...], top: tuple[tuple[int, float], ...] = ((1, 0.0), (2, -9.0))
) -> Transcript:
    """`top`: of every position, likeliest first."""
    told = dict(top)
    others = tuple(TokenText(str(token), b"", logprob, (), token) for token, logprob in top)
    said = tuple(
        TokenText(str(token), b"", told.get(token, -20.0), others, token) for token in token_ids
    )
    made = Transcript()
    made.see((Begun(replica="r", mode=Mode.PLAIN, num_prompt_tokens=NUM_PROMPT),))
    for token, logprob in zip(token_ids, said, strict=True):
        made.see((Piece(index=0, token_ids=(token,), logprobs=(logprob,)),))
    made.see(
        (Ended(num_prompt_tokens=4, num_completion_tokens=1, counters=Counters(), mode=Mode.PLAIN),)
    )
    return made


def found(
    sent: tuple[int, ...],
    mirrored: tuple[int, ...],
    top: tuple[tuple[int, float], ...] = ((1, 0.0), (2, -9.0)),
    **fields: Any,
) -> Comparison:
    return compare(
        call(**fields), transcript(sent), transcript(mirrored, top), near_tie=0.5, request_id="q"
    )


def test_the_same_tokens_are_the_same() -> None:
    assert found((1, 1, 2), (1, 1, 2)) == Comparison(likeness=Likeness.SAME, request_id="q")


@pytest.mark.parametrize(("gap", "likeness"), [(0.2, Likeness.NEAR_TIE), (3.0, Likeness.MISMATCH)])
def test_the_first_difference_is_judged_by_the_margin_between_its_two_tokens(
    gap: float, likeness: Likeness
) -> None:
    told = found((1, 2, 2), (1, 1, 1), ((1, 0.0), (2, -gap)))
    assert (told.likeness, told.position) == (likeness, 1)
    assert told.margin == pytest.approx(gap)


def test_a_token_that_was_not_likely_at_all_is_as_far_away_as_is_known() -> None:
    far = found((7,), (1,), ((1, 0.0), (2, -4.0)))
    assert (far.likeness, far.margin) == (Likeness.MISMATCH, 4.0)
    flat = found((7,), (1,), ((1, 0.0), (2, -0.1)))  # it may be near, or not
    assert flat.likeness is Likeness.UNCOMPARED


def test_an_answer_that_ends_before_the_other_differs() -> None:
    told = found((1, 1), (1,))
    assert (told.likeness, told.position, told.margin) == (Likeness.MISMATCH, 1, None)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(presence_penalty=1.0),
        SamplingParams(logit_bias={3: 5.0}),
        SamplingParams(min_tokens=2),
    ],
)
def test_where_the_raw_logits_do_not_decide_a_difference_is_not_judged(
    params: SamplingParams,
) -> None:
    assert found((2,), (1,), params=params).likeness is Likeness.UNCOMPARED


def test_a_drawn_token_is_judged_with_the_noise_that_both_drew() -> None:
    """The rival had logprob + noise a little below what was drawn: a tie of that draw."""
    seed, temperature = 11, 0.8
    noise = exponential(seed, NUM_PROMPT, Purpose.SAMPLE, 3)
    edge = temperature * float(np.log(noise[2]) - np.log(noise[1]))
    params = SamplingParams(temperature=temperature)
    for gap, likeness in ((0.1, Likeness.NEAR_TIE), (2.0, Likeness.MISMATCH)):
        top = ((1, 0.0), (2, edge - gap))
        told = found((2,), (1,), top, params=params, seed=seed)
        assert told.likeness is likeness
        assert told.margin == pytest.approx(gap)


def test_behind_a_filter_only_a_tie_explains_a_difference() -> None:
    params = SamplingParams(temperature=1.0, top_p=0.9)
    noise = exponential(11, NUM_PROMPT, Purpose.SAMPLE, 3)
    edge = float(np.log(noise[2]) - np.log(noise[1]))
    near = found((2,), (1,), ((1, 0.0), (2, edge - 0.1)), params=params, seed=11)
    far = found((2,), (1,), ((1, 0.0), (2, edge - 2.0)), params=params, seed=11)
    assert (near.likeness, far.likeness) == (Likeness.NEAR_TIE, Likeness.UNCOMPARED)


def test_drawn_answers_are_compared_where_both_share_noise_and_seed() -> None:
    drawn = SamplingParams(temperature=1.0)
    assert is_comparable(call(), are_coupled=False)
    assert is_comparable(call(params=drawn, seed=1), are_coupled=True)
    assert not is_comparable(call(params=drawn, seed=1), are_coupled=False)
    assert not is_comparable(call(params=drawn), are_coupled=True)


def test_the_mirrored_call_asks_for_rivals_and_for_no_fewer_than_its_sender() -> None:
    assert with_rivals(call()).params.top_logprobs == 5
    assert with_rivals(call(params=SamplingParams(top_logprobs=9))).params.top_logprobs == 9
