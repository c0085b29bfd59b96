"""Whatever is seen and whoever says what, in any order: what a rollout never does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from course import FAILS, GATES, OPEN, PASSES, PLAN, asks, candidate
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from outrider.config.schema import OnStall, PlanSettings
from outrider.core import UserError
from outrider.rollout.command import Verb
from outrider.rollout.layout import IN_CHARGE, TRIED, goal, weight_of
from outrider.rollout.observation import Observation
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.start import begin, may_start, supersede
from outrider.rollout.state import advance
from outrider.rollout.status import Move, Status
from outrider.rollout.verdict import Judgement, Verdict
from outrider.serving.split import Arm, Plan, choose

KEYS = [f"session-{i}" for i in range(60)]
PLANS = st.builds(
    replace,
    st.just(replace(PLAN, min_samples=2)),
    weights=st.sampled_from([(0.05,), (0.3, 0.6), (0.05, 0.25, 0.5)]),
    shadow_share=st.sampled_from([0.0, 1.0]),
    min_s=st.sampled_from([0.0, 5.0]),
    on_stall=st.sampled_from(OnStall),
    confirm=st.booleans(),
    keep_s=st.sampled_from([0.0, 20.0]),
)
MOSTLY_YES = st.sampled_from([True, True, True, False])
MOSTLY_PASS = st.sampled_from([PASSES, PASSES, OPEN])
JUDGEMENTS = st.sampled_from([PASSES] * 10 + [OPEN, OPEN, OPEN, Judgement(), FAILS])
LOOKS = st.fixed_dictionaries(
    {
        "health": st.sampled_from([Health.READY] * 10 + [Health.STARTING, Health.FAILED, None]),
        "has_warmed": MOSTLY_YES,
        "is_stable_there": MOSTLY_YES,
        "judgement": JUDGEMENTS,
        "num_stable": st.integers(0, 6),
        "num_candidate": st.integers(0, 6),
        "num_shadow": st.integers(0, 6),
        "confirmation": st.none() | JUDGEMENTS,
        "pre_answered": MOSTLY_YES,
        "is_settled": MOSTLY_YES,
    }
)
NO_VERBS: list[Verb] = []
VERBS = st.just(NO_VERBS) | st.lists(st.sampled_from(Verb), max_size=3)


class Rollouts(RuleBasedStateMachine):
    """One service and every rollout it ever had; the gateway takes no plan of a lower revision."""

    @initialize(plan=PLANS, by_hand=st.booleans())
    def begins(self, plan: PlanSettings, by_hand: bool) -> None:
        self.plan = replace(plan, approvals=plan.weights) if by_hand else plan
        self.now_s = 1000.0
        self.in_force = Plan(stable="release-0")
        self.fingerprint = "f-0"  # of stable
        self.rollouts: list[Status] = []
        self.had_ready = False

    @property
    def active(self) -> Status | None:
        return next((status for status in self.rollouts if not status.phase.is_over), None)

    def _put(self) -> None:
        wanted = goal(self.rollouts[-1], self.plan, GATES).plan
        if wanted.revision > self.in_force.revision:
            self.in_force = wanted
        assert self.in_force == wanted

    @rule(number=st.integers(1, 4), force=st.booleans())
    def starts(self, number: int, force: bool) -> None:
        tried = candidate(f"f-{number}", f"release-{len(self.rollouts) + 1}")
        active = self.active
        history = [status for status in self.rollouts if status.phase.is_over]
        try:
            may_start(tried, self.fingerprint, active, history, force=force)
        except UserError:
            return
        if active is not None:
            assert active.has_stalled
            self.rollouts[-1], _ = supersede(active, tried, self.now_s, "ada@host")
            self._put()
        self.had_ready = False
        self.rollouts.append(
            begin(
                tried,
                self.in_force,
                self.rollouts,
                rollout_id=f"r{number}",
                service="http://localhost",
                stable_fingerprint=self.fingerprint,
                now_s=self.now_s,
            )
        )
        self._put()

    @precondition(lambda self: self.rollouts)
    @rule(look=LOOKS, verbs=VERBS, after_s=st.sampled_from([0.0, 1.0, 6.0, 30.0, 70.0]))
    def looks(self, look: dict[str, Any], verbs: list[Verb], after_s: float) -> None:
        self._look(look, verbs, after_s)

    @precondition(lambda self: self.rollouts)
    @rule(num=st.integers(1, 8), judgement=MOSTLY_PASS, confirmation=MOSTLY_PASS)
    def looks_well(self, num: int, judgement: Judgement, confirmation: Judgement) -> None:
        """Random looks alone seldom come far."""
        good = {"health": Health.READY, "has_warmed": True, "judgement": judgement}
        enough = {
            "num_stable": 9,
            "num_candidate": 9,
            "num_shadow": 9,
            "confirmation": confirmation,
        }
        for _ in range(num):
            self._look(good | enough, [], 6.0)

    def _look(self, look: dict[str, Any], verbs: list[Verb], after_s: float) -> None:
        self.now_s += after_s
        before = self.rollouts[-1]
        commands = tuple(asks(verb) for verb in verbs)
        seen = Observation(revision=before.revision, commands=commands, **look)
        after, moves = advance(before, seen, self.plan, self.now_s)
        self.had_ready |= seen.health is Health.READY
        self._check(before, after, moves, seen)
        assert advance(after, seen, self.plan, self.now_s) == (after, ())
        held = self._of_candidate(before)
        self.rollouts[-1] = after
        self._put()
        now = self._of_candidate(after)
        assert held <= now or not now  # sticky: all along, or all back
        if after.phase is Phase.PROMOTED and before.phase is not Phase.PROMOTED:
            self.fingerprint = after.candidate.fingerprint

    def _check(
        self, before: Status, after: Status, moves: tuple[Move, ...], seen: Observation
    ) -> None:
        assert after.revision == before.revision + (after != before)
        if before.phase.is_over:
            assert after == before
        old, new = weight_of(before, self.plan), weight_of(after, self.plan)
        assert new >= old or (new == 0 and after.phase.is_bad_end)
        if moves:
            assert (moves[-1].phase, moves[-1].weight) == (after.phase, new)
        if (after.phase, after.step) == (before.phase, before.step) or after.phase.is_bad_end:
            return
        assert moves
        said = {command.verb for command in seen.commands} | (
            {Verb.APPROVE} if before.approved else set()
        )
        if before.phase in TRIED and not said & {Verb.APPROVE, Verb.PROMOTE}:
            evidence = seen.confirmation if before.phase is Phase.CONFIRMING else seen.judgement
            assert evidence is not None
            assert evidence.verdict is Verdict.PASS
            assert old not in self.plan.approvals or before.phase is Phase.CONFIRMING
        if Verb.PROMOTE not in said:
            assert not before.is_paused or Verb.RESUME in said
            assert seen.judgement.verdict is not Verdict.FAIL or not seen.is_stable_there

    def _of_candidate(self, status: Status) -> set[str]:
        """Keys that the candidate answers, in whatever arm it is by now."""
        plan = goal(status, self.plan, GATES).plan
        name = status.candidate.name
        return {key for key in KEYS if choose(plan, key).release == name}

    @invariant()
    def at_most_one_is_active(self) -> None:
        assert sum(not status.phase.is_over for status in self.rollouts) <= 1

    @precondition(lambda self: self.rollouts)
    @invariant()
    def the_service_has_what_serves(self) -> None:
        status = self.rollouts[-1]
        whole = goal(status, self.plan, GATES)
        assert whole.plan.stable in whole.releases
        assert whole.plan.candidate is None or whole.plan.candidate in whole.releases
        if status.phase not in IN_CHARGE:
            assert whole.plan.stable == status.stable
        if status.phase.is_bad_end:
            assert whole.releases == {status.stable}
            forced = choose(whole.plan, "key", Arm.CANDIDATE)
            assert forced.release == status.stable
        if status.candidate.name in {whole.plan.stable, whole.plan.candidate}:
            assert self.had_ready


TestRollouts = Rollouts.TestCase
TestRollouts.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
