"""Is a speculative output the plain one? Differences at near ties are counted apart (law 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from outrider.core import Completion, FinishReason, Request

Margin = Callable[[Request, tuple[int, ...]], float]
"""(request, output tokens so far) -> top-2 margin of the processed target there, in logits.

One plain request of one token with two top logprobs over prompt and output so far tells it: a
difference of log probabilities is one of logits.
"""


class Verdict(Enum):
    """What a comparison found."""

    EQUAL = "equal"
    NEAR_TIE = "near_tie"  # they part where the target itself hardly prefers either token
    MISMATCH = "mismatch"
    NOT_COMPARED = "not_compared"  # one was cancelled, or both failed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two completions of one request."""

    verdict: Verdict
    position: int | None = None  # first output token that differs
    margin: float | None = None  # logits, at that position
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Parity:
    """Counts over many requests; they add up. Near ties are not among the mismatches."""

    compared: int = 0
    mismatches: int = 0
    near_ties: int = 0

    @classmethod
    def of(cls, comparison: Comparison) -> Parity:
        return cls(
            compared=int(comparison.verdict is not Verdict.NOT_COMPARED),
            mismatches=int(comparison.verdict is Verdict.MISMATCH),
            near_ties=int(comparison.verdict is Verdict.NEAR_TIE),
        )

    def __add__(self, other: Parity) -> Parity:
        return Parity(
            self.compared + other.compared,
            self.mismatches + other.mismatches,
            self.near_ties + other.near_ties,
        )


def compare(
    request: Request,
    reference: Completion,
    other: Completion,
    *,
    near_tie: float,
    margin: Margin | None = None,
) -> Comparison:
    """Compare `other` with the plain `reference` of the same request.

    The first differing token is a near tie where the margin there is below `near_tie` logits.
    Without `margin` (or for a sampled request, whose noise the margin does not see) every
    difference is a mismatch.
    """
    failed = [done.finish_reason is FinishReason.ERROR for done in (reference, other)]
    if FinishReason.ABORT in (reference.finish_reason, other.finish_reason) or all(failed):
        return Comparison(Verdict.NOT_COMPARED, reason="cancelled, or both failed")
    if any(failed):
        return Comparison(Verdict.MISMATCH, reason=f"only one failed: {_error(reference, other)}")
    common = common_length(reference.token_ids, other.token_ids)
    if common < min(len(reference.token_ids), len(other.token_ids)):
        return _at_difference(request, reference.token_ids[:common], near_tie, margin)
    return _same_tokens(reference, other, common)


def _at_difference(
    request: Request, prefix: tuple[int, ...], near_tie: float, margin: Margin | None
) -> Comparison:
    if margin is None or not request.params.is_greedy:
        return Comparison(Verdict.MISMATCH, len(prefix), reason="tokens differ")
    gap = margin(request, prefix)
    if gap < near_tie:
        return Comparison(Verdict.NEAR_TIE, len(prefix), gap)
    return Comparison(Verdict.MISMATCH, len(prefix), gap, "tokens differ at a clear margin")


def _same_tokens(reference: Completion, other: Completion, common: int) -> Comparison:
    """No token differs: one may still be longer, or have ended or read otherwise."""
    if len(reference.token_ids) != len(other.token_ids):
        return Comparison(Verdict.MISMATCH, common, reason="one output ends before the other")
    for name in ("finish_reason", "stop_reason", "text"):
        if getattr(reference, name) != getattr(other, name):
            return Comparison(Verdict.MISMATCH, reason=f"{name} differs")
    return Comparison(Verdict.EQUAL)


def common_length(one: Sequence[int], two: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _error(*completions: Completion) -> str:
    return next((done.error for done in completions if done.error), "no reason given")
