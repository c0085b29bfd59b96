"""Exactness by enumeration: every draft, every cell of every uniform, weighed by its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.core import Rule, SamplingParams
from outrider.engine.sampling import History, Probs, TokenChooser, one_hot, pick
from outrider.engine.verify import accept_by_ratio, accept_while_equal, residual

TargetOf = Callable[[tuple[int, ...]], Probs]
Law = dict[tuple[int, ...], float]


def cells(edges: list[float]) -> Iterator[tuple[float, float]]:
    """(midpoint, length) of the cells into which the edges cut [0, 1]."""
    inner = sorted({0.0, 1.0, *(edge for edge in edges if 0.0 < edge < 1.0)})
    return ((low + (high - low) / 2, high - low) for low, high in pairwise(inner))


def blocks_of(q_of: TargetOf, k: int) -> Iterator[tuple[tuple[int, ...], list[Probs], float]]:
    """Every block of k drafted tokens with its q's and its probability."""
    size = q_of(()).size
    for block in product(range(size), repeat=k):
        qs = [q_of(block[:i]) for i in range(k)]
        weight = float(np.prod([q[token] for q, token in zip(qs, block, strict=True)]))
        if weight > 0.0:
            yield block, qs, weight


def emitted_law(p_of: TargetOf, q_of: TargetOf, k: int, *, one_hot_q: bool = False) -> Law:
    """The exact law of what one round emits, by running the real code over all its randomness."""
    law: Law = {}
    for block, qs, weight in blocks_of(q_of, k):
        ratios = [p_of(block[:i])[block[i]] / qs[i][block[i]] for i in range(k)]
        tests = product(*(list(cells([ratio])) for ratio in ratios))
        for uniforms in tests:
            share = weight * float(np.prod([length for _, length in uniforms]))
            for emitted, part in outcomes(p_of, block, None if one_hot_q else qs, uniforms):
                law[emitted] = law.get(emitted, 0.0) + share * part
    return law


def outcomes(
    p_of: TargetOf,
    block: tuple[int, ...],
    qs: list[Probs] | None,
    uniforms: tuple[tuple[float, float], ...],
) -> Iterator[tuple[tuple[int, ...], float]]:
    """(emitted tokens, probability) for every cell of the last draw."""
    edges: list[float] = []

    def record(probs: Probs, _: int) -> int:
        edges[:] = list(np.cumsum(probs / probs.sum()))
        return 0

    def run(draw: Callable[[Probs, int], int]) -> tuple[int, ...]:
        outcome = accept_by_ratio(
            lambda i: p_of(block[:i]), block, qs, lambda i: uniforms[i][0], draw, draw
        )
        return (*block[: outcome.accepted], outcome.token)

    run(record)
    for middle, length in cells(edges):
        yield run(lambda probs, _, u=middle: pick(probs, u)), length


def plain_law(p_of: TargetOf, law: Law) -> Law:
    """What plain decoding gives the same sequences."""
    return {
        tokens: float(np.prod([p_of(tokens[:i])[token] for i, token in enumerate(tokens)]))
        for tokens in law
    }


def first_token(law: Law, size: int) -> list[float]:
    return [sum(w for tokens, w in law.items() if tokens[0] == first) for first in range(size)]


def constant(*probs: float) -> TargetOf:
    return lambda prefix: np.array(probs)


def test_top_k_is_applied_before_q_is_reported() -> None:
    """E02: with the raw q reported, token 0 would get .5556."""
    chooser = TokenChooser(SamplingParams(temperature=1.0, top_k=2), Rule.RATIO)
    _, q = chooser.draft(np.log([0.6, 0.3, 0.1]), History(), 0)
    assert q == pytest.approx([2 / 3, 1 / 3, 0.0])
    law = emitted_law(constant(0.5, 0.5, 0.0), lambda prefix: q, 1)
    assert first_token(law, 3) == pytest.approx([0.5, 0.5, 0.0], abs=1e-12)


def test_an_argmax_draft_is_one_hot() -> None:
    """E03: scored with its softmax q, the same draft would give token 0 .8333."""
    law = emitted_law(constant(0.5, 0.5), lambda prefix: one_hot(0, 2), 1, one_hot_q=True)
    assert first_token(law, 2) == pytest.approx([0.5, 0.5], abs=1e-12)
    outcome = accept_by_ratio(
        lambda i: np.array([0.5, 0.5]),
        [0],
        [np.array([0.6, 0.4])],
        lambda i: 0.55,
        pick_heaviest,
        pick_heaviest,
    )
    assert outcome.accepted == 1, "a softmax q would accept at .5 / .6: q must say one-hot"


def test_unlikely_drawn_tokens_are_tested_like_any_other() -> None:
    """E05: dropping drawn tokens with q under .2 would turn (.9, .1) into (.99, .01)."""
    p = constant(0.9, 0.1)
    kept = emitted_law(p, p, 1)
    assert first_token(kept, 2) == pytest.approx([0.9, 0.1], abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_ratio_rule_emits_exactly_what_plain_decoding_would(k: int) -> None:
    """Distributions that depend on the prefix, so that a wrong row of p or q would show (E04)."""
    table = np.random.default_rng(7).dirichlet(np.ones(3), size=(2, 40))

    def of(which: int) -> TargetOf:
        return lambda prefix: table[which][sum((t + 1) * 3**i for i, t in enumerate(prefix)) % 40]

    law = emitted_law(of(0), of(1), k)
    # A round's tokens are a prefix of a sequence: compare the marginal of every first token and,
    # within it, of what follows.
    for length in range(1, k + 2):
        prefixes = {tokens[:length] for tokens in law if len(tokens) >= length}
        for prefix in prefixes:
            reached = sum(
                w
                for tokens, w in law.items()
                if tokens[: length - 1] == prefix[:-1] and len(tokens) >= length
            )
            mine = sum(w for tokens, w in law.items() if tokens[:length] == prefix)
            if reached > 1e-12:
                assert mine / reached == pytest.approx(of(0)(prefix[:-1])[prefix[-1]], abs=1e-9)
    assert sum(law.values()) == pytest.approx(1.0)


distributions = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


@given(distributions, distributions)
def test_any_p_and_q_give_p(p: list[int], q: list[int]) -> None:
    p_, q_ = np.array(p) / sum(p), np.array(q) / sum(q)
    law = emitted_law(lambda prefix: p_, lambda prefix: q_, 1)
    assert first_token(law, 3) == pytest.approx(list(p_), abs=1e-9)


@given(distributions, st.integers(0, 2))
def test_any_p_and_any_one_hot_draft_give_p(p: list[int], token: int) -> None:
    p_ = np.array(p) / sum(p)
    law = emitted_law(lambda prefix: p_, lambda prefix: one_hot(token, 3), 1, one_hot_q=True)
    assert first_token(law, 3) == pytest.approx(list(p_), abs=1e-9)


def test_the_correction_comes_from_the_rejected_position() -> None:
    """E04: reject at the first and at the last candidate; the chooser is asked for that row."""
    plain = [1, 2, 3, 4]
    first = accept_while_equal(plain.__getitem__, [0, 2, 3])
    assert (first.accepted, first.evaluated, first.token) == (0, 1, 1)
    last = accept_while_equal(plain.__getitem__, [1, 2, 0])
    assert (last.accepted, last.evaluated, last.token) == (2, 3, 3)
    whole = accept_while_equal(plain.__getitem__, [1, 2, 3])
    assert (whole.accepted, whole.evaluated, whole.token) == (3, 3, 4)


def test_the_target_is_not_asked_behind_a_rejection() -> None:
    asked: list[int] = []
    accept_while_equal(lambda i: asked.append(i) or 9, [1, 2, 3])
    assert asked == [0]


def test_equal_distributions_leave_no_residual_but_still_a_distribution() -> None:
    p = np.array([0.25, 0.75])
    assert residual(p, p, 0) == pytest.approx([0.25, 0.75])


def test_a_token_of_zero_probability_is_never_accepted() -> None:
    outcome = accept_by_ratio(
        lambda i: np.array([0.0, 1.0]), [0], None, lambda i: 0.0, lambda p, i: 7, pick_heaviest
    )
    assert (outcome.accepted, outcome.token) == (0, 1)


def pick_heaviest(probs: Probs, _: int) -> int:
    return int(probs.argmax())
