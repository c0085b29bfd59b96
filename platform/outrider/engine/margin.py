"""How clearly the target prefers its next token: what tells a near tie from a mismatch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from outrider.core import Completion, Request, SamplingParams, Speculation, UserError
from outrider.engine.noise import Purpose, exponential

Submit = Callable[[Request], Future[Completion]]

MARGIN_ENDS = 2  # a margin lies between the two likeliest tokens
FORCED = 100.0  # bias, in logits, that makes any token the likeliest
NOWHERE = float("inf")


def top2_margin(submit: Submit, request: Request, prefix: tuple[int, ...]) -> float:
    """The target's top-2 margin behind `prefix`, in logits; infinite where it says nothing.

    One plain token behind prompt and prefix with two logprobs: their difference is that of the
    logits. With penalties, a bias or a masked EOS the raw margin decided nothing. `submit` takes
    the question under the id of `request`, which must not be in flight.
    """
    asked_for = request.params
    if asked_for.has_penalties or asked_for.logit_bias or len(prefix) < asked_for.min_tokens:
        return NOWHERE
    params = replace(asked_for, max_tokens=1, min_tokens=0, top_logprobs=2, stop=())
    said = _one_token(submit, request, prefix, params)
    if said is None or not said.logprobs or len(said.logprobs[0].top) < MARGIN_ENDS:
        return NOWHERE
    (_, first), (_, second) = said.logprobs[0].top[:MARGIN_ENDS]
    return first - second


def rivals_margin(
    submit: Submit, request: Request, prefix: tuple[int, ...], rivals: tuple[int, int]
) -> float:
    """How far apart two tokens are behind `prefix` for a sampled request under rule coupled.

    In logits, with the noise that both decodings drew at that position: the token with the larger
    logit / temperature + Gumbel noise is emitted (`engine.sampling`). Infinite where filters,
    penalties, a bias or a masked EOS had a say, or where there is no room for one more token.
    """
    params = request.params
    is_filtered = params.top_p < 1.0 or params.top_k or params.min_p
    is_changed = params.has_penalties or params.logit_bias or len(prefix) < params.min_tokens
    if params.is_greedy or is_filtered or is_changed:
        return NOWHERE
    position = len(request.prompt_ids) + len(prefix)
    noise = exponential(params.seed, position, Purpose.SAMPLE, max(rivals) + 1)
    scores = []
    for token in rivals:
        logprob = _logprob(submit, request, prefix, token)
        if logprob is None:
            return NOWHERE
        scores.append(logprob - params.temperature * float(np.log(noise[token])))
    return abs(scores[0] - scores[1])


def _logprob(submit: Submit, request: Request, prefix: tuple[int, ...], token: int) -> float | None:
    """Of `token` under the raw target: it is forced, and logprobs do not see the force."""
    params = SamplingParams(max_tokens=1, top_logprobs=0, logit_bias={token: FORCED})
    said = _one_token(submit, request, prefix, params)
    if said is None or said.token_ids != (token,) or not said.logprobs:
        return None
    return said.logprobs[0].logprob


def _one_token(
    submit: Submit, request: Request, prefix: tuple[int, ...], params: SamplingParams
) -> Completion | None:
    """Behind prompt and prefix; None where there is no room for it."""
    asked = replace(
        request,
        prompt_ids=request.prompt_ids + prefix,
        params=replace(params, ignore_eos=True),
        speculation=Speculation(enabled=False),
        stream=False,
    )
    try:
        return submit(asked).result()
    except UserError:
        return None
