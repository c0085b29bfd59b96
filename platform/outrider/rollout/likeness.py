"""Two releases' answers to one chat completion, side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from outrider.serving.sample import Likeness

FAILED = "failed"  # only the candidate gave no answer
ENDS = 2  # a margin lies between the two likeliest tokens

Answer = Mapping[str, Any]


def likeness(stable: Answer | None, candidate: Answer | None, *, near_tie: float) -> str:
    """A `Likeness`, or FAILED. None: the release refused the prompt.

    They are compared token by token, by the logprobs that both must have been asked for. Where
    they part, the margin is stable's: the log probabilities of its two likeliest tokens apart, in
    logits.
    """
    if stable is None:
        return Likeness.UNCOMPARED
    if candidate is None:
        return FAILED
    ours, theirs = _tokens(stable), _tokens(candidate)
    common = sum(1 for _ in takewhile(_are_equal, zip(ours, theirs, strict=False)))
    if common < min(len(ours), len(theirs)):
        is_near = _margin(ours[common]) < near_tie
        return Likeness.NEAR_TIE if is_near else Likeness.MISMATCH
    is_same = len(ours) == len(theirs) and _end(stable) == _end(candidate)
    return Likeness.SAME if is_same else Likeness.MISMATCH


def _tokens(answer: Answer) -> Sequence[Mapping[str, Any]]:
    return (answer["choices"][0].get("logprobs") or {}).get("content") or ()


def _end(answer: Answer) -> tuple[str, str]:
    choice = answer["choices"][0]
    return choice["message"]["content"] or "", choice["finish_reason"]


def _are_equal(pair: tuple[Answer, Answer]) -> bool:
    one, two = pair
    return all(one.get(key) == two.get(key) for key in ("token", "bytes"))


def _margin(token: Mapping[str, Any]) -> float:
    top = token.get("top_logprobs") or []
    if len(top) < ENDS:
        return float("inf")
    return float(top[0]["logprob"]) - float(top[1]["logprob"])
