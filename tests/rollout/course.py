"""One rollout that is looked at once a second, for stories of what it does."""

from __future__ import annotations

from typing import Any

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.command import Command, Verb
from outrider.rollout.layout import plan_of, weight_of
from outrider.rollout.observation import Observation
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.start import begin
from outrider.rollout.state import advance
from outrider.rollout.status import Candidate, Move, Status
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.serving.split import Plan

PLAN = PlanSettings(weights=(0.05, 0.25, 0.5), min_samples=10, min_s=5.0, max_s=60.0, keep_s=20.0)
GATES = GateSettings(near_tie=0.3)
GOOD = {"health": Health.READY, "has_warmed": True}


def candidate(fingerprint: str = "f-new", name: str = "new") -> Candidate:
    return Candidate(name=name, fingerprint=fingerprint)


def judged(verdict: Verdict, reason: str = "as the test says") -> Judgement:
    found = Finding(figure="tokens_per_s", verdict=verdict, bound=0.95, reason=reason)
    return Judgement(findings=(found,))


PASSES = judged(Verdict.PASS)
FAILS = judged(Verdict.FAIL, "0.7 of stable's speed; at least 0.95")
OPEN = judged(Verdict.INCONCLUSIVE, "0.9 to 1.1 of stable's speed")


def begun(name: str = "r1", **changes: Any) -> Status:
    return begin(
        candidate(),
        Plan(stable="old"),
        (),
        rollout_id=name,
        service="http://localhost",
        stable_fingerprint="f-old",
        now_s=1000.0,
        **changes,
    )


def asks(verb: Verb, why: str = "") -> Command:
    return Command(verb=verb, who="ada@host", at_s=0.0, why=why)


class Course:
    """Where nothing else is said the candidate is ready, passes, and has samples enough."""

    def __init__(self, plan: PlanSettings = PLAN, status: Status | None = None) -> None:
        self.plan = plan
        self.status = status or begun()
        self.now_s = self.status.began_s
        self.moves: list[Move] = []

    @property
    def weight(self) -> float:
        return weight_of(self.status, self.plan)

    @property
    def in_force(self) -> Plan:
        return plan_of(self.status, self.plan, GATES)

    def look(self, *verbs: Verb, after_s: float = 1.0, **seen: Any) -> tuple[Move, ...]:
        self.now_s += after_s
        told: dict[str, Any] = {
            **GOOD,
            "judgement": PASSES,
            "confirmation": PASSES,
            "num_stable": 10,
            "num_candidate": 10,
            "num_shadow": 10,
            **seen,
        }
        commands = tuple(asks(verb) for verb in verbs)
        look = Observation(revision=self.status.revision, commands=commands, **told)
        self.status, moves = advance(self.status, look, self.plan, self.now_s)
        self.moves.extend(moves)
        return moves

    def reach(self, phase: Phase, step: int = 0) -> Course:
        """By what is good all along."""
        for _ in range(300):
            if self.status.phase is phase and self.status.step == step:
                return self
            self.look()
        raise AssertionError(f"{phase} is not reached from {self.status}")

    def looks(self, num: int, **seen: Any) -> list[Move]:
        return [move for _ in range(num) for move in self.look(**seen)]
