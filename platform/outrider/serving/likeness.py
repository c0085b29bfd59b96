"""Is a mirrored answer the one that was sent? Token by token, near ties apart. Pure.

Exact decoding gives the same tokens in exact arithmetic. In floating point the two engines score
other batches, so where two tokens are nearly as likely either may come out (design, law 2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outrider.core import SamplingParams
from outrider.engine.noise import Purpose, exponential
from outrider.engine.parity import common_length
from outrider.openai.answer import TokenText
from outrider.openai.call import Call
from outrider.serving.choices import choice_seed
from outrider.serving.sample import Comparison, Likeness
from outrider.serving.transcript import Transcript

NUM_RIVALS = 5  # likeliest tokens that a mirrored answer tells of each position


def is_comparable(call: Call, *, are_coupled: bool) -> bool:
    """Whether both decodings must give the same tokens. A drawn one needs a seed, too.

    `are_coupled`: both releases share their noise (`core.Rule.COUPLED`).
    """
    return call.params.is_greedy or (are_coupled and call.seed is not None)


def with_rivals(call: Call) -> Call:
    """The call, so that its answer tells how close its tokens were."""
    most = max(call.params.top_logprobs or 0, NUM_RIVALS)
    return replace(call, params=replace(call.params, top_logprobs=most))


def compare(
    call: Call, sent: Transcript, mirrored: Transcript, *, near_tie: float, request_id: str
) -> Comparison:
    """By the first choice that differs. `near_tie` in logits. Both are whole and comparable."""
    for index in range(call.num_choices):
        one, other = sent.token_ids.get(index, []), mirrored.token_ids.get(index, [])
        if one == other:
            continue
        position = common_length(one, other)
        if position == min(len(one), len(other)):  # no token differs: one ended too early
            return Comparison(likeness=Likeness.MISMATCH, request_id=request_id, position=position)
        margin = _margin(call, mirrored, index, position, one[position], near_tie)
        return Comparison(
            likeness=_likeness(call, margin, near_tie),
            request_id=request_id,
            position=position,
            margin=margin,
        )
    return Comparison(likeness=Likeness.SAME, request_id=request_id)


def _likeness(call: Call, margin: float | None, near_tie: float) -> Likeness:
    """A small margin explains a difference. A large one is none where a filter stood between."""
    if margin is None:
        return Likeness.UNCOMPARED
    if margin < near_tie:
        return Likeness.NEAR_TIE
    return Likeness.UNCOMPARED if _is_filtered(call.params) else Likeness.MISMATCH


def _margin(
    call: Call, mirrored: Transcript, index: int, position: int, rival: int, near_tie: float
) -> float | None:
    """Logits between the token that was mirrored and `rival`, which was sent; at least so much
    where `rival` is not among the likeliest. None where the raw logits do not decide.
    """
    params, told = call.params, mirrored.logprobs.get(index, [])
    is_changed = params.has_penalties or params.logit_bias or position < params.min_tokens
    if is_changed or len(told) <= position or (call.num_prompts > 1 and not params.is_greedy):
        return None
    chosen = told[position]
    at = mirrored.num_prompt_tokens + position
    noise = _noise(params, choice_seed(call.seed or 0, index), at, (chosen.token_id, rival))
    margin = chosen.logprob - _logprob(chosen, rival) + noise
    if any(other.token_id == rival for other in chosen.top):
        return abs(margin)
    return margin if margin >= near_tie else None


def _logprob(chosen: TokenText, token: int) -> float:
    """Of `token` where `chosen` was drawn; one that is not told has at most the last one's."""
    told = {other.token_id: other.logprob for other in chosen.top}
    return told.get(token, min(told.values(), default=chosen.logprob))


def _noise(params: SamplingParams, seed: int, position: int, rivals: tuple[int, int]) -> float:
    """What the noise of both decodings gave the first of `rivals` over the second, in logits."""
    if params.is_greedy:
        return 0.0
    noise = exponential(seed, position, Purpose.SAMPLE, max(rivals) + 1)
    return params.temperature * float(np.log(noise[rivals[1]]) - np.log(noise[rivals[0]]))


def _is_filtered(params: SamplingParams) -> bool:
    """A token on the edge of a filter may be in one decoding and not in the other."""
    return not params.is_greedy and bool(params.top_p < 1.0 or params.top_k or params.min_p)
