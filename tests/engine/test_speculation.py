"""Length rule, cost model and breakers together, on a toy machine with noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from outrider.config.schema import (
    BreakerSettings,
    DraftLengthSettings,
    LengthPolicy,
    ServingSettings,
)
from outrider.engine.breaker import Phase
from outrider.engine.cost import CostModel
from outrider.engine.draft_sums import DraftSums
from outrider.engine.drafters import NO_OFFER, Offer
from outrider.engine.speculation import (
    Candidate,
    RoundCost,
    RowOutcome,
    RowState,
    SpeculationPolicy,
)
from outrider.serving.guard import Guard
from outrider.serving.guard_state import Phase as GuardPhase
from outrider.serving.messages import Control, Pulse

OFFER = Offer("ngram", (3, 4, 5, 6, 7, 8, 8, 8))
Chance = Callable[[int, int], float]
"""(round, row id) -> P(a drafted token is accepted)"""


def seconds_of(tokens: int) -> float:
    return 0.022 + 0.0012 * tokens


@dataclass
class World:
    """A machine of 22 ms + 1.2 ms per token with lognormal noise, and rows without end."""

    chance: Chance
    num_rows: int = 1
    policy: LengthPolicy = LengthPolicy.ADAPTIVE
    max_length: int = 8
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    seed: int = 0
    failing: bool = False
    limits: dict[int, int] = field(default_factory=dict)  # row id -> limit

    def __post_init__(self) -> None:
        length = DraftLengthSettings(policy=self.policy, max=self.max_length)
        self.rng = random.Random(self.seed)
        self.spec = SpeculationPolicy(length, self.breaker, CostModel({}))
        self.rows = [self.spec.row(index) for index in range(self.num_rows)]
        self.lengths: list[tuple[int, ...]] = []  # [round][row]
        self.phases: list[Phase] = []
        self.emitted, self.seconds = 0, 0.0
        self.counted = DraftSums()

    def run(self, rounds: int) -> World:
        for _ in range(rounds):
            self._round()
        return self

    def _round(self) -> None:
        candidates = [Candidate(row, OFFER, self.limits.get(row.row_id, 8)) for row in self.rows]
        decision = self.spec.decide(candidates, base_rows=self.num_rows, base_tokens=self.num_rows)
        pairs = zip(self.rows, decision.lengths, strict=True)
        outcomes = [self._outcome(row, length) for row, length in pairs]
        tokens = self.num_rows + sum(outcome.drafted for outcome in outcomes)
        self.seconds += seconds_of(tokens)
        noise = math.exp(self.rng.gauss(0.0, 0.1))
        self.spec.observe(outcomes, RoundCost(self.num_rows, tokens, 0, seconds_of(tokens) * noise))
        self.emitted += sum(outcome.emitted for outcome in outcomes)
        for outcome in outcomes:
            self.counted += DraftSums(outcome.drafted, outcome.accepted)
        self.lengths.append(decision.lengths)
        self.phases.append(self.spec.breaker.phase)

    def _outcome(self, row: RowState, length: int) -> RowOutcome:
        if length == 0:
            return RowOutcome(row)
        if self.failing:
            return RowOutcome(row, NO_OFFER, failed=True)
        chance, accepted = self.chance(len(self.lengths), row.row_id), 0
        while accepted < length and self.rng.random() < chance:
            accepted += 1
        evaluated = min(accepted + 1, length)
        return RowOutcome(row, OFFER, length, evaluated, accepted, accepted + 1)

    def drafting_ratio(self, start: int) -> float:
        """Share of the rounds from `start` on in which any row drafted."""
        return sum(any(lengths) for lengths in self.lengths[start:]) / len(self.lengths[start:])

    @property
    def speed_up(self) -> float:
        return self.emitted / self.seconds / (self.num_rows / seconds_of(self.num_rows))


@pytest.mark.parametrize("num_rows", [1, 8])
def test_an_always_wrong_drafter_comes_to_rest(num_rows: int) -> None:
    world = World(lambda _round, _row: 0.0, num_rows).run(1200)
    assert world.drafting_ratio(200) < 0.02
    assert world.speed_up > 0.98


def test_an_always_wrong_drafter_of_fixed_length_is_taken_back() -> None:
    world = World(lambda _round, _row: 0.0, 8, LengthPolicy.FIXED, 4).run(1500)
    assert Phase.OPEN in world.phases[:200]
    assert world.drafting_ratio(200) < 0.05


@pytest.mark.parametrize("policy", list(LengthPolicy))
def test_a_good_drafter_is_never_taken_back(policy: LengthPolicy) -> None:
    for seed in range(3):
        world = World(lambda _round, _row: 0.8, policy=policy, seed=seed).run(1500)
        assert set(world.phases) == {Phase.CLOSED}
        assert all(row.breaker.phase is Phase.CLOSED for row in world.rows)
        assert world.speed_up > 2.4


def test_speculation_is_back_after_the_drafter_has_become_good() -> None:
    """E17: acceptance 0 for 200 rounds, then .9: opens, half-opens, closes."""
    world = World(lambda round_, _row: 0.0 if round_ < 200 else 0.9, 8, LengthPolicy.FIXED, 4).run(
        900
    )
    story = [world.phases[0]]
    for phase in world.phases:
        if phase is not story[-1]:
            story.append(phase)
    assert story[:3] == [Phase.CLOSED, Phase.OPEN, Phase.HALF_OPEN]
    assert story[-1] is Phase.CLOSED
    assert world.drafting_ratio(700) > 0.9


def test_the_length_rule_comes_back_by_itself_too() -> None:
    """E17, where the rule had gone to zero before the breaker had to."""
    world = World(lambda round_, _row: 0.0 if round_ < 200 else 0.9).run(1000)
    assert world.lengths[150:200].count((0,)) > 45
    assert world.drafting_ratio(800) > 0.9
    assert sum(map(sum, world.lengths[-100:])) / 100 > 4


def test_friendly_and_hostile_rows_of_one_batch_get_their_own_lengths() -> None:
    """E18."""
    world = World(lambda _round, row: 0.9 if row == 0 else 0.02, 2).run(400)
    late = world.lengths[-100:]
    assert sum(friendly for friendly, _ in late) / 100 > 4
    assert sum(hostile for _, hostile in late) / 100 < 0.3


def test_a_row_that_says_no_never_drafts() -> None:
    """E18."""
    world = World(lambda _round, _row: 0.9, 3, limits={1: 0}).run(300)
    assert all(lengths[1] == 0 for lengths in world.lengths)
    assert world.drafting_ratio(100) > 0.9


@pytest.mark.parametrize("policy", list(LengthPolicy))
def test_a_drafter_that_keeps_failing_is_left_alone(policy: LengthPolicy) -> None:
    world = World(lambda _round, _row: 0.9, policy=policy, failing=True).run(600)
    asked = [any(lengths) for lengths in world.lengths]
    assert Phase.OPEN in world.phases
    assert sum(asked[: world.phases.index(Phase.OPEN)]) < 20
    assert sum(asked[100:]) / 500 < 0.08


def test_a_half_open_trial_asks_a_share_of_the_rows() -> None:
    world = World(lambda _round, _row: 0.0, 8, LengthPolicy.FIXED, 4).run(1000)
    trials = [
        sum(length > 0 for length in lengths)
        for lengths, before in zip(world.lengths[1:], world.phases, strict=False)
        if before is Phase.HALF_OPEN
    ]
    assert trials
    assert max(trials) == 2  # a quarter of eight


def test_a_batch_that_always_drafts_still_finds_that_plain_is_better() -> None:
    world = World(lambda _round, _row: 0.5, 32).run(900)  # one token per row costs 1.6 x, gives 1.5
    assert world.drafting_ratio(600) < 0.3


@pytest.mark.parametrize("policy", list(LengthPolicy))
def test_limits_and_budget_hold(policy: LengthPolicy) -> None:
    length = DraftLengthSettings(policy=policy, max=5)
    spec = SpeculationPolicy(length, BreakerSettings(enabled=False), CostModel({}))
    offers = (OFFER, Offer("ngram", (8,)), NO_OFFER, OFFER)
    candidates = [
        Candidate(spec.row(index), offer, limit)
        for index, (offer, limit) in enumerate(zip(offers, (15, 15, 15, 2), strict=True))
    ]
    free = spec.decide(candidates, base_rows=4, base_tokens=4)
    tight = spec.decide(candidates, base_rows=4, base_tokens=4, budget=3)
    assert all(k <= most for k, most in zip(free.lengths, (5, 1, 0, 2), strict=True))
    assert sum(tight.lengths) <= 3
    if policy is LengthPolicy.FIXED:
        assert free.lengths == (5, 1, 0, 2)


def test_a_round_without_decoding_rows_is_no_matter() -> None:
    spec = SpeculationPolicy(DraftLengthSettings(), BreakerSettings(), CostModel({}))
    decision = spec.decide([], base_rows=1, base_tokens=64)
    spec.observe([], RoundCost(1, 64, 0, 0.08))
    assert decision.lengths == ()
    assert spec.num_rounds == 1


def test_state_is_readable_per_row_and_engine() -> None:
    world = World(lambda _round, _row: 0.9).run(20)
    assert set(world.spec.to_dict()) == {"num_rounds", "breaker", "acceptance", "cost"}
    assert set(world.rows[0].to_dict()) == {"row_id", "log_odds_shift", "breaker"}


def test_a_fixed_length_still_measures_plain_decoding_now_and_then() -> None:
    watched = World(lambda _round, _row: 0.9, policy=LengthPolicy.FIXED).run(600)
    assert 0.985 <= watched.drafting_ratio(0) < 1.0
    unwatched = World(
        lambda _round, _row: 0.9, policy=LengthPolicy.FIXED, breaker=BreakerSettings(enabled=False)
    ).run(100)
    assert set(unwatched.lengths) == {(8,)}


def test_what_drafting_gave_over_plain_decoding_is_summed() -> None:
    good = World(lambda _round, _row: 0.8).run(400).spec.drafts
    wrong = World(lambda _round, _row: 0.0, 4, LengthPolicy.FIXED, 8).run(100).spec.drafts
    assert good.goodput_ratio is not None
    assert good.goodput_ratio > 1.8
    assert wrong.goodput_ratio is not None
    assert wrong.goodput_ratio < 0.8
    assert wrong.num_drafts > 100
    assert World(lambda _round, _row: 0.8, limits={0: 0}).run(50).spec.drafts.num_drafts == 0


def test_probes_draft_though_the_rule_has_come_to_rest_but_not_against_the_breaker() -> None:
    """A trial of the whole release must tell something within seconds."""
    world = World(lambda _round, _row: 0.0).run(400)
    assert world.lengths[-100:].count((0,)) > 95
    world.spec.probe_share = 0.5
    assert world.run(3).lengths[-3:] == [(4,)] * 3
    world.run(300)
    assert world.drafting_ratio(-100) < 0.3


@pytest.mark.parametrize("num_rows", [1, 8])
@pytest.mark.parametrize("chance", [0.0, 0.05, 0.3, 0.9])
def test_the_guard_of_a_release_leaves_alone_what_an_engine_mends_itself(
    num_rows: int, chance: float
) -> None:
    """With the shipped settings, over 40 seconds of an adaptive length."""
    world = World(lambda _round, _row: chance, num_rows, max_length=15)
    assert guarded(world) == {GuardPhase.CLOSED}


def test_the_guard_of_a_release_takes_back_what_no_engine_mends() -> None:
    unbroken = BreakerSettings(enabled=False)
    world = World(lambda _round, _row: 0.0, 8, LengthPolicy.FIXED, 4, unbroken)
    assert GuardPhase.OPEN in guarded(world)


def guarded(world: World) -> set[GuardPhase]:
    """Phases of the guard of a release of this one engine, looked at twice a second."""
    guard, settings, phases = Guard(), ServingSettings(), set()
    for look in range(80):
        while world.seconds < look / 2:
            world.run(1)
        drafts = world.counted + world.spec.drafts
        pulse = Pulse(replica="r", control=Control(), drafts=drafts)
        guard = guard.after([pulse], settings, world.seconds)
        phases.add(guard.state.phase)
    return phases
