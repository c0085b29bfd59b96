"""From logits to distributions and tokens."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.core import Rule, SamplingParams
from outrider.engine.noise import Purpose, exponential, uniform
from outrider.engine.sampling import History, TokenChooser, pick, token_logprob

LOGITS = np.array([2.0, 1.0, 0.5, -1.0, 0.0])


def chooser(rule: Rule = Rule.COUPLED, **params: object) -> TokenChooser:
    return TokenChooser(SamplingParams(**params), rule, (4,))  # type: ignore[arg-type]


def history(*output: int, prompt: tuple[int, ...] = ()) -> History:
    return History(frozenset(prompt), Counter()).after(output)


def test_top_k_keeps_the_likeliest_and_ties_go_to_the_lower_id() -> None:
    probs = chooser(temperature=1.0, top_k=2).distribution(np.array([1.0, 3.0, 1.0]), history())
    assert (probs > 0).tolist() == [True, True, False]


def test_top_p_keeps_the_smallest_set_that_holds_the_mass() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    kept = {
        p: int((chooser(temperature=1.0, top_p=p).distribution(logits, history()) > 0).sum())
        for p in (0.4, 0.49, 0.6, 0.79, 0.9, 1.0)
    }
    assert kept == {0.4: 1, 0.49: 1, 0.6: 2, 0.79: 2, 0.9: 3, 1.0: 4}


def test_min_p_is_relative_to_the_likeliest() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    probs = chooser(temperature=1.0, min_p=0.31).distribution(logits, history())
    assert probs == pytest.approx([0.5 / 0.8, 0.3 / 0.8, 0, 0])


def test_temperature_divides_the_logits() -> None:
    probs = chooser(temperature=0.5).distribution(LOGITS, history())
    wanted = np.exp(LOGITS * 2)
    assert probs == pytest.approx(wanted / wanted.sum())


def test_the_smallest_temperature_is_greedy() -> None:
    """Dividing by it overflows, which must not turn into NaN."""
    for temperature in (1e-3, 5e-324):
        probs = chooser(temperature=temperature).distribution(LOGITS, history())
        assert probs.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_penalties_follow_the_openai_convention() -> None:
    """Presence and frequency count generated tokens; repetition counts the prompt too."""
    adjusted = chooser(presence_penalty=0.5, frequency_penalty=0.25).adjust(
        LOGITS, history(1, 1, 3, prompt=(0,))
    )
    assert adjusted == pytest.approx([2.0, 1.0 - 1.0, 0.5, -1.0 - 0.75, 0.0])
    adjusted = chooser(repetition_penalty=2.0).adjust(LOGITS, history(3, prompt=(0,)))
    assert adjusted == pytest.approx([1.0, 1.0, 0.5, -2.0, 0.0])


def test_bias_and_min_tokens_act_before_the_choice() -> None:
    assert chooser(logit_bias={3: 100.0}).choose(LOGITS, history(), 0) == 3
    eager = np.array([0.0, 1.0, 0.0, 0.0, 9.0])
    assert chooser(min_tokens=2).choose(eager, history(1), 0) == 1
    assert chooser(min_tokens=2).choose(eager, history(1, 1), 0) == 4


def test_the_logits_are_left_as_they_were() -> None:
    before = LOGITS.copy()
    chooser(logit_bias={0: 1.0}, frequency_penalty=1.0, temperature=1.0).choose(
        LOGITS, history(0), 0
    )
    assert before.tolist() == LOGITS.tolist()


def test_the_draft_is_drawn_from_the_q_it_reports() -> None:
    """Law 3, rule ratio: everything that shapes the draw is in q."""
    shaped = chooser(
        Rule.RATIO, temperature=0.7, top_k=3, min_tokens=5, logit_bias={0: -1.0}, seed=4
    )
    counts = np.zeros(5)
    for position in range(4000):
        token, q = shaped.draft(LOGITS, history(1), position)
        counts[token] += 1
    assert q is not None
    assert counts / 4000 == pytest.approx(q, abs=0.03)
    assert q[4] == 0.0


def test_a_greedy_draft_is_one_hot_under_both_rules() -> None:
    for rule in Rule:
        assert chooser(rule).draft(LOGITS, history(), 0) == (0, None)


def test_under_the_coupled_rule_draft_and_target_share_the_noise() -> None:
    one = chooser(temperature=1.0, seed=9)
    for position in range(50):
        assert one.draft(LOGITS, history(), position)[0] == one.choose(LOGITS, history(), position)


def test_under_the_ratio_rule_they_do_not() -> None:
    one = chooser(Rule.RATIO, temperature=1.0, seed=9)
    pairs = [
        (one.draft(LOGITS, history(), i)[0], one.choose(LOGITS, history(), i)) for i in range(50)
    ]
    assert any(draft != target for draft, target in pairs)


def test_gumbel_draws_follow_the_distribution() -> None:
    one = chooser(temperature=1.0, seed=1)
    probs = one.distribution(LOGITS, history())
    counts = np.bincount([one.choose(LOGITS, history(), i) for i in range(6000)], minlength=5)
    assert counts / 6000 == pytest.approx(probs, abs=0.02)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any), st.floats(0, 0.999))
def test_the_inverse_cdf_never_picks_what_has_no_mass(weights: list[int], u: float) -> None:
    probs = np.array(weights) / sum(weights)
    assert probs[pick(probs, u)] > 0


def test_noise_depends_on_seed_position_and_purpose_only() -> None:
    draws = {
        (seed, position, purpose): uniform(seed, position, purpose)
        for seed in (0, 1, 2**63)
        for position in (0, 1, 1000)
        for purpose in Purpose
    }
    assert len(set(draws.values())) == len(draws)
    again = uniform(1, 1000, Purpose.ACCEPT)
    assert draws[1, 1000, Purpose.ACCEPT] == again
    noise = exponential(3, 5, Purpose.SAMPLE, 1000)
    assert noise.min() > 0.0
    assert noise.mean() == pytest.approx(1.0, abs=0.15)


def test_a_negative_seed_is_a_seed_too() -> None:
    assert uniform(-1, 0, Purpose.SAMPLE) != uniform(1, 0, Purpose.SAMPLE)


def test_logprobs_are_of_the_raw_target() -> None:
    entry = token_logprob(LOGITS, 1, 2)
    wanted = LOGITS - np.log(np.exp(LOGITS).sum())
    assert entry.logprob == pytest.approx(wanted[1])
    assert [token for token, _ in entry.top] == [0, 1]
    assert token_logprob(LOGITS, 1, 0).top == ()
