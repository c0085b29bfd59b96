"""A whole rollout in one process: a service in memory, a clock that is moved, a real database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from outrider.config.schema import GateSettings, PlanSettings, WebhookSettings
from outrider.core import SamplingParams
from outrider.rollout.assembly import controller_of
from outrider.rollout.command import Verb
from outrider.rollout.controller import Controller
from outrider.rollout.database import Database
from outrider.rollout.opening import Opening
from outrider.rollout.operator import order
from outrider.rollout.status import Candidate, Move, Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.webhooks import Webhooks
from outrider.testing import Effect, ManualClock, MemoryRegistry, MemoryService, MemoryTracker
from outrider.tracking.process import Process
from outrider.tracking.registry import Alias
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.store_uri import sqlite_uri
from outrider.trial.case import Case
from outrider.trial.evaluation import Evaluation

URL = "http://127.0.0.1:8000"
TICK_S = 2.0
PLAN = PlanSettings(
    weights=(0.25, 0.5), min_samples=30, min_s=5.0, max_s=400.0, keep_s=6.0, confirm=True
)
FEW = GateSettings(  # errors and answers alone, which few requests decide
    min_speed_ratio=0.0,
    min_acceptance_ratio=0.0,
    min_tokens_per_round_ratio=0.0,
    max_first_token_ratio=0.0,
    max_inter_token_ratio=0.0,
    max_total_ratio=0.0,
    max_error_increase=0.3,
)
ALL = GateSettings()
PROMPTS = Evaluation(
    name="evaluation.jsonl",
    sha256="0123456789abcdef",
    cases=tuple(
        Case(
            name=f"prompt-{number}",
            messages=({"role": "user", "content": f"What is {number} and {number}?"},),
            params=SamplingParams(max_tokens=16),
        )
        for number in range(6)
    ),
)


class Stand:
    """What outlives a controller. `controller()` is another process of the same machine."""

    def __init__(
        self,
        database: str | Store,
        effects: Mapping[str, Effect] | None = None,
        *,
        plan: PlanSettings = PLAN,
        gates: GateSettings = FEW,
        webhooks: WebhookSettings | None = None,
        per_s: float = 50.0,
        url: str = URL,
    ) -> None:
        self.clock = ManualClock(1_000_000.0)
        is_open = isinstance(database, Store)
        self.store = database if is_open else Store(Database(database))
        self.url = url
        self.service = MemoryService(self.clock, effects, per_s=per_s)
        self.registry = MemoryRegistry(self.clock)
        self.tracker = MemoryTracker()
        self.plan = plan
        self.gates = gates
        self.webhooks = webhooks or WebhookSettings()
        self.told: list[str] = []
        for name in ("stable", "candidate"):
            self.registry.register(_record(f"fingerprint-of-{name}"), "")
        self.registry.give(Alias.CHAMPION, 1)
        self.rollout_id = ""

    def begin(self, candidate: Candidate | None = None, *, force: bool = False) -> Rollout:
        opening = Opening(
            candidate=candidate or CANDIDATE,
            plan=self.plan,
            gates=self.gates,
            url=self.url,
            store=self.store,
            service=self.service,
            now_s=self.clock.time(),
            force=force,
        )
        rollout, _ = opening.open(self.tracker, who="ada@ship")
        self.rollout_id = rollout.status.rollout_id
        return rollout

    def controller(self, rollout_id: str = "", process: Process | None = None) -> Controller:
        return controller_of(
            self.store.get(rollout_id or self.rollout_id),
            store=self.store,
            service=self.service,
            registry=self.registry,
            tracker=self.tracker,
            webhooks=Webhooks(self.webhooks, tell=self.told.append),
            prompts=PROMPTS,
            clock=self.clock,
            tell=self.told.append,
            process=process,
        )

    def run(self) -> Status:
        """To its end, by a new controller."""
        return self.controller().run(tick_s=TICK_S, pause=self.clock.advance)

    def until(self, controller: Controller, phase: str, *, most: int = 400) -> Status:
        """Ticks until it is in a phase."""
        for _ in range(most):
            status = controller.tick()
            if status.phase == phase:
                return status
            self.clock.advance(TICK_S)
        raise AssertionError(f"never {phase}: {status}")

    def order(self, verb: Verb, why: str = "") -> None:
        order(self.store, self.url, verb, who="ada@ship", why=why, at_s=self.clock.time())

    def moves(self) -> tuple[Move, ...]:
        return self.store.moves(self.rollout_id)

    def way(self) -> list[tuple[str, int, float]]:
        return [(move.phase.value, move.step, move.weight) for move in self.moves()]

    def aliases(self) -> dict[str, int]:
        return {alias: each.number for each in self.registry.versions() for alias in each.aliases}


def sqlite_stand(
    folder: Path,
    effects: Mapping[str, Effect] | None = None,
    plan: PlanSettings = PLAN,
    gates: GateSettings = FEW,
) -> Stand:
    return Stand(sqlite_uri(folder / "rollouts.db"), effects, plan=plan, gates=gates)


def another_process(number: int) -> Process:
    """One of another machine, of which nobody here knows whether it lives."""
    return replace(Process.current(), host=f"machine-{number}", pid=str(number))


def _record(fingerprint: str) -> ReleaseRecord:
    return ReleaseRecord(fingerprint=fingerprint, settings={}, config={})


CANDIDATE = Candidate(
    name="candidate",
    fingerprint="fingerprint-of-candidate",
    settings={"draft": {"kind": "ngram"}},
    version=2,
    uri="models:/outrider/2",
)
GOOD_WAY = [
    ("deploying", 0, 0.0),
    ("warming", 0, 0.0),
    ("shadow", 0, 0.0),
    ("canary", 0, 0.25),
    ("canary", 1, 0.5),
    ("confirming", 1, 0.5),
    ("promoting", 1, 1.0),
    ("keeping", 1, 1.0),
    ("promoted", 1, 1.0),
]
