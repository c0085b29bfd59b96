"""Acceptance is learnt from tested positions, per class and per row."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.acceptance import AcceptanceModel, RowAcceptance, initial_guess
from outrider.engine.drafters import Offer
from outrider.engine.drafters.head_block import BLIND, levels

OFFER = Offer("ngram", (3, 4, 5, 6))


def feed(
    model: AcceptanceModel, row: RowAcceptance, chance: float, rounds: int, seed: int = 0
) -> None:
    rng = random.Random(seed)
    for round_ in range(rounds):
        accepted = 0
        while accepted < len(OFFER.levels) and rng.random() < chance:
            accepted += 1
        evaluated = min(accepted + 1, len(OFFER.levels))
        model.observe(row, OFFER, evaluated, accepted, round_)


def test_a_longer_match_is_trusted_more_before_anything_is_known() -> None:
    guesses = [initial_guess("ngram", level) for level in range(12)]
    assert guesses == sorted(guesses)
    assert (guesses[1], guesses[8], guesses[11]) == (0.3, 0.8, 0.8)
    assert initial_guess("model", 0) == 0.6
    assert initial_guess("someone", 3) == 0.5


def test_a_sure_head_is_believed_more_whatever_the_position() -> None:
    for position in range(3):
        sure = [
            initial_guess("head", levels(bucket, position + 1)[position]) for bucket in range(BLIND)
        ]
        assert sure == sorted(set(sure))
        assert initial_guess("head", levels(BLIND, position + 1)[position]) == 0.5


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_a_constant_chance_is_found(chance: float) -> None:
    model, row = AcceptanceModel(), {}
    feed(model, row, chance, 1500)
    assert model.expect(row, OFFER)[0] == pytest.approx(chance, abs=0.12)


def test_positions_behind_a_rejection_say_nothing() -> None:
    model, row = AcceptanceModel(), {}
    before = model.expect({}, OFFER)
    for _ in range(50):
        model.observe(row, OFFER, evaluated=1, accepted=0)
    after = model.expect({}, OFFER)
    assert after[0] < before[0] / 4
    assert after[1:] == before[1:]


def test_a_friendly_and_a_hostile_row_part_within_one_batch() -> None:
    """E18."""
    model = AcceptanceModel()
    friendly: RowAcceptance = {}
    hostile: RowAcceptance = {}
    for seed in range(60):
        feed(model, friendly, 0.95, 1, seed)
        feed(model, hostile, 0.02, 1, seed)
    assert model.expect(friendly, OFFER)[0] > 0.75
    assert model.expect(hostile, OFFER)[0] < 0.1


def test_a_new_row_starts_from_what_the_deployment_has_seen() -> None:
    model = AcceptanceModel()
    for seed in range(100):
        feed(model, {}, 0.9, 1, seed)
    assert model.expect({}, OFFER)[0] > 0.75


def test_old_evidence_fades() -> None:
    model, row = AcceptanceModel(discount=0.96), {}
    feed(model, row, 0.95, 2000)
    feed(model, row, 0.0, 60)
    assert model.expect(row, OFFER)[0] < 0.2
    feed(model, row, 0.95, 100)
    assert model.expect(row, OFFER)[0] > 0.6


def test_drafters_are_learnt_apart() -> None:
    model, row = AcceptanceModel(), {}
    feed(model, row, 0.0, 100)
    assert model.expect(row, Offer("model", (3,))) == [pytest.approx(0.6)]


def test_each_position_is_divided_by_its_own_attempts() -> None:
    """E22: k varies between 1 and 7."""
    model = AcceptanceModel()
    for length in range(1, 8):
        model.observe({}, Offer("ngram", (4,) * length), evaluated=length, accepted=length)
    model.observe({}, Offer("ngram", (4,) * 7), evaluated=1, accepted=0)
    assert model.position_attempts == [8, 6, 5, 4, 3, 2, 1]
    assert model.position_accepts == [7, 6, 5, 4, 3, 2, 1]
    assert model.position_ratios == [7 / 8, 1, 1, 1, 1, 1, 1]


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=60))
def test_ratios_and_expectations_are_probabilities(blocks: list[tuple[int, bool]]) -> None:
    """E21."""
    model, row = AcceptanceModel(), {}
    offer = Offer("ngram", (1, 2, 3, 4, 5, 6, 7))
    for accepted, rejected in blocks:
        model.observe(row, offer, accepted + rejected, accepted)
    assert all(0.0 <= ratio <= 1.0 for ratio in model.position_ratios)
    assert all(0.0 < chance < 1.0 for chance in model.expect(row, offer))


def test_the_table_is_readable() -> None:
    model = AcceptanceModel()
    model.observe({}, OFFER, 2, 1, round_=7)
    classes = model.to_dict()["classes"]
    assert isinstance(classes, dict)
    assert sorted(classes) == ["ngram:3", "ngram:4"]
    assert model.last_tested("ngram", 3) == 7
    assert model.last_tested("ngram", 6) < 0
