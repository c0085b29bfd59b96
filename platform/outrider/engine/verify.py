"""Stages 3 and 4: accept the valid prefix of a block, resample where it failed. Pure.

The target is asked position by position and only as far as the testing goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.engine.sampling import Probs


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a block of k drafted tokens: the first `accepted` stand and `token` follows them.

    `evaluated` positions were tested: accepted + 1 after a rejection, else k.
    """

    accepted: int
    evaluated: int
    token: int
    uniforms: tuple[float, ...] = ()  # the acceptance tests' draws, for the trace


def accept_while_equal(choose: Callable[[int], int], drafted: Sequence[int]) -> Outcome:
    """Rule coupled, and greedy under any rule: `choose(i)` is plain decoding's token at i.

    What is emitted is what plain decoding emits, whatever was drafted.
    """
    for index, token in enumerate(drafted):
        chosen = choose(index)
        if chosen != token:
            return Outcome(index, index + 1, chosen)
    return Outcome(len(drafted), len(drafted), choose(len(drafted)))


def accept_by_ratio(
    target: Callable[[int], Probs],
    drafted: Sequence[int],
    q: Sequence[Probs] | None,
    test: Callable[[int], float],
    draw: Callable[[Probs, int], int],
    resample: Callable[[Probs, int], int],
) -> Outcome:
    """Rule ratio: Leviathan et al. 2023, "Fast inference from transformers via speculative
    decoding", Algorithm 1.

    `target(i)` is p at block position i, `q[i]` what `drafted[i]` was drawn from (None: one-hot);
    `test(i)` is uniform in [0, 1); `draw` and `resample` turn a distribution into a token at i.
    Accept with probability min(1, p/q); after a rejection draw from (p - q)+, normalised.
    """
    uniforms: list[float] = []
    for index, token in enumerate(drafted):
        p = target(index)
        q_token = 1.0 if q is None else float(q[index][token])
        uniforms.append(test(index))
        # u < p/q, without dividing by a q that underflowed.
        if uniforms[-1] * q_token >= p[token]:
            rest = residual(p, None if q is None else q[index], token)
            return Outcome(index, index + 1, resample(rest, index), tuple(uniforms))
    last = len(drafted)
    return Outcome(last, last, draw(target(last), last), tuple(uniforms))


def residual(p: Probs, q: Probs | None, token: int) -> Probs:
    """(p - q)+ normalised; q None means one-hot at `token`. Shapes [vocab]."""
    if q is None:
        rest = p.copy()
        rest[token] = 0.0
    else:
        rest = np.maximum(p - q, 0.0)
    total = rest.sum()
    # Only rounding can reject where p and q are equal: p itself is then the right distribution.
    return rest / total if total > 0.0 else p
