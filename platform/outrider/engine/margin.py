"""How clearly the target prefers its next token: what tells a near tie from a mismatch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from outrider.core import Completion, Request, Speculation, UserError

Submit = Callable[[Request], Future[Completion]]

MARGIN_ENDS = 2  # a margin lies between the two likeliest tokens


def top2_margin(submit: Submit, request: Request, prefix: tuple[int, ...]) -> float:
    """The target's top-2 margin behind `prefix`, in logits; infinite where it says nothing.

    One plain token behind prompt and prefix with two logprobs: their difference is that of the
    logits. With penalties, a bias or a masked EOS the raw margin decided nothing. `submit` takes
    the question under the id of `request`, which must not be in flight.
    """
    asked_for = request.params
    if asked_for.has_penalties or asked_for.logit_bias or len(prefix) < asked_for.min_tokens:
        return float("inf")
    params = replace(
        asked_for, max_tokens=1, min_tokens=0, top_logprobs=2, stop=(), ignore_eos=True
    )
    asked = replace(
        request,
        prompt_ids=request.prompt_ids + prefix,
        params=params,
        speculation=Speculation(enabled=False),
        stream=False,
    )
    try:
        logprobs = submit(asked).result().logprobs
    except UserError:  # no room for one more token
        return float("inf")
    if not logprobs or len(logprobs[0].top) < MARGIN_ENDS:
        return float("inf")
    (_, first), (_, second) = logprobs[0].top[:MARGIN_ENDS]
    return first - second
