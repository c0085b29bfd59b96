"""Evidence may be looked at after every observation."""

from __future__ import annotations

import itertools
import random

import pytest

from outrider.engine.evidence import NO_EVIDENCE


def test_expected_wealth_under_the_hypothesis_is_at_most_one_by_enumeration() -> None:
    payoffs = ((0.25, 3.0), (0.75, -1.0))  # (probability, payoff): mean 0
    expected = 0.0
    for path in itertools.product(payoffs, repeat=9):
        evidence, probability = NO_EVIDENCE, 1.0
        for chance, payoff in path:
            evidence, probability = evidence.bet(payoff, 1.0, 0.98), probability * chance
        expected += probability * evidence.wealth
    assert expected == pytest.approx(1.0)


def test_wealth_never_turns_negative_even_beyond_the_stated_worst() -> None:
    evidence = NO_EVIDENCE
    for payoff in (1.0, 1.0, 1.0, -100.0):
        evidence = evidence.bet(payoff, 1.0, 0.98)
    assert 0.0 < evidence.wealth < 1.0


def test_false_alarms_stay_below_alpha_when_watched_all_along() -> None:
    alarms = 0
    for seed in range(200):
        rng, evidence = random.Random(seed), NO_EVIDENCE
        for _ in range(300):
            evidence = evidence.bet(3.0 if rng.random() < 0.25 else -1.0, 1.0, 0.98)
            if evidence.wealth >= 20.0:
                alarms += 1
                break
    assert alarms <= 20  # alpha = 5 % of 200 is 10, and twice that is 3 standard deviations


def test_good_times_do_not_eat_the_wealth_that_notices_bad_ones() -> None:
    evidence = NO_EVIDENCE
    for _ in range(10_000):
        evidence = evidence.bet(-2.0, 4.0, 0.98)
    assert evidence.wealth == 1.0
