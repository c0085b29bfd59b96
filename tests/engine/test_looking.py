"""Looks are made where they pay: on a toy machine, and in the rule by itself."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

from outrider.config.schema import BreakerSettings, DraftLengthSettings, LengthPolicy
from outrider.engine.breaker import Phase
from outrider.engine.cost import CostModel
from outrider.engine.drafters import NO_OFFER, Offer
from outrider.engine.looking import Looking
from outrider.engine.speculation import Candidate, RoundCost, RowOutcome, SpeculationPolicy

LOOK = 2  # steps
BLIND, SURE, DOUBTFUL = (0, 0, 0), (1, 1, 1), (2, 2, 2)


@dataclass
class World:
    """One row on a machine of 30 ms a round and 0.5 ms a token; a look tells luck from bad luck."""

    step_s: float
    chance: float = 0.9  # P(accepted) where the look says so, a round in three; else a tenth of it
    policy: LengthPolicy = LengthPolicy.ADAPTIVE

    def __post_init__(self) -> None:
        length = DraftLengthSettings(policy=self.policy, max=3)
        self.spec = SpeculationPolicy(length, BreakerSettings(), CostModel({}))
        self.row, self.rng = self.spec.row(0), random.Random(1)
        self.looks: list[bool] = []

    def run(self, rounds: int) -> World:
        for _ in range(rounds):
            self._round()
        return self

    def share(self, last: int) -> float:
        return sum(self.looks[-last:]) / last

    def _round(self) -> None:
        looks, lucky = self.spec.may_look(self.row), self.rng.random() < 1 / 3
        self.looks.append(looks)
        if looks:
            levels = SURE if lucky else DOUBTFUL
            offer = Offer("head", levels, num_steps=1, num_run=LOOK, num_seen=1)
        else:
            offer = Offer("head", BLIND, num_steps=1, num_first=LOOK - 1)
        (length,) = self.spec.decide(
            [Candidate(self.row, offer, 3)], base_rows=1, base_tokens=1
        ).lengths
        steps = LOOK + max(length - 1, 0) if looks or length else 0
        outcome = self._outcome(offer, length, self.chance if lucky else self.chance / 10)
        seconds = 0.030 + 0.0005 * length + self.step_s * steps
        self.spec.observe([outcome], RoundCost(1, 1 + length, steps, seconds))

    def _outcome(self, offer: Offer, length: int, chance: float) -> RowOutcome:
        if not length:
            return RowOutcome(self.row)
        hits = [self.rng.random() < chance for _ in range(length)]
        accepted = hits.index(False) if False in hits else length
        evaluated = min(accepted + 1, length)
        return RowOutcome(self.row, offer, length, evaluated, accepted, accepted + 1)


def test_looks_that_pay_are_made_in_every_round() -> None:
    assert World(step_s=0.0005).run(1000).share(500) > 0.95


def test_looks_that_cost_more_than_they_bring_come_to_rest() -> None:
    assert World(step_s=0.008).run(800).share(400) < 0.05


def test_they_are_back_when_steps_have_become_cheap() -> None:
    world = World(step_s=0.008).run(600)
    world.step_s = 0.0005
    assert world.run(1500).share(500) > 0.9


def test_a_fixed_length_looks_always() -> None:
    assert World(step_s=0.02, policy=LengthPolicy.FIXED).run(300).share(300) == 1.0


def test_nobody_looks_for_a_breaker_that_is_open() -> None:
    world = World(step_s=0.0005).run(50)
    other = world.spec.row(1)
    other.breaker = replace(other.breaker, phase=Phase.OPEN)
    assert (world.spec.may_look(world.row), world.spec.may_look(other)) == (True, False)
    world.spec.breaker = other.breaker
    assert not world.spec.may_look(world.row)


def test_rounds_without_a_look_teach_nothing_of_looks() -> None:
    spec = SpeculationPolicy(DraftLengthSettings(), BreakerSettings(), CostModel({}))
    row = spec.row(0)
    for _ in range(50):
        spec.decide([Candidate(row, NO_OFFER, 4)], base_rows=1, base_tokens=1)
    assert spec.may_look(row)


@dataclass
class Rule:
    """Looks of one gain."""

    state: Looking = field(default_factory=Looking)

    def looks(self, gain: float, rounds: int) -> list[int]:
        begin = self.state.next_round
        due = []
        for round_ in range(begin, begin + rounds):
            if self.state.is_due(round_):
                due.append(round_)
                self.state.observe(gain, round_)
        return due


def test_hope_lasts_some_rounds_and_then_the_wait_doubles() -> None:
    due = Rule().looks(-0.1, 400)
    gaps = [after - before for before, after in pairwise(due)]
    first = gaps.index(2)
    assert first >= 10
    assert gaps[first : first + 5] == [2, 4, 8, 16, 32]
    assert max(Rule().looks(-0.1, 2000)[-1:]) >= 2000 - 128


def test_one_look_that_pays_on_average_ends_the_wait() -> None:
    rule = Rule()
    rule.looks(-0.1, 300)
    assert rule.state.wait > 16
    assert rule.looks(4.0, 300)[2:4] == [rule.state.next_round - 298, rule.state.next_round - 297]
