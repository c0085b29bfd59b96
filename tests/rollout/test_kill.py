"""A controller that is killed anywhere: the next one goes on, and nothing happens twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rollout_stand import GOOD_WAY, PLAN, TICK_S, Stand

from outrider.rollout.command import Command
from outrider.rollout.controller import Controller
from outrider.rollout.database import Database
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Service
from outrider.rollout.status import Candidate, Move, Status
from outrider.rollout.store import Rollout, Store
from outrider.serving.split import Plan
from outrider.testing import Effect
from outrider.tracking.registry import Alias, Registry
from outrider.tracking.store_uri import sqlite_uri

QUICK = replace(PLAN, weights=(0.5,), min_s=2.0, keep_s=2.0)
CHILD = Path(__file__).with_name("rollout_child.py")


class Killer:
    """Counts what was done, and kills behind the n-th."""

    def __init__(self, at: int) -> None:
        self.left = at

    def did(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise SystemExit("killed")


class MortalService:
    """A service whose caller dies right behind an effect of it."""

    def __init__(self, service: Service, killer: Killer) -> None:
        self._service, self._killer = service, killer
        self.state, self.read = service.state, service.read

    def deploy(self, candidate: Candidate) -> None:
        self._service.deploy(candidate)
        self._killer.did()

    def remove(self, name: str) -> None:
        self._service.remove(name)
        self._killer.did()

    def put_plan(self, plan: Plan) -> None:
        self._service.put_plan(plan)
        self._killer.did()

    def ask(self, release: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._service.ask(release, body)


class MortalStore(Store):
    """One whose writer dies right before a move is written, right behind it, or behind a note."""

    def __init__(self, store: Store, killer: Killer) -> None:
        super().__init__(store.database)
        self._killer = killer

    def commit(
        self, rollout: Rollout, moves: Sequence[Move] = (), taken: Sequence[Command] = ()
    ) -> Rollout:
        if moves:
            self._killer.did()
        done = super().commit(rollout, moves, taken)
        if moves:
            self._killer.did()
        return done

    def keep(self, rollout_id: str, name: str, text: str) -> None:
        super().keep(rollout_id, name, text)
        self._killer.did()


class MortalRegistry:
    """One whose caller dies right behind a change."""

    def __init__(self, registry: Registry, killer: Killer) -> None:
        self._registry, self._killer = registry, killer
        self.find, self.versions = registry.find, registry.versions

    def give(self, alias: Alias, number: int) -> None:
        self._registry.give(alias, number)
        self._killer.did()

    def set_tags(self, number: int, tags: Mapping[str, str]) -> None:
        self._registry.set_tags(number, tags)
        self._killer.did()


def mortal(stand: Stand, killer: Killer) -> Controller:
    store, service = stand.store, stand.service
    stand.store = MortalStore(store, killer)
    stand.service = MortalService(service, killer)  # type: ignore[assignment]
    registry = stand.registry
    stand.registry = MortalRegistry(registry, killer)  # type: ignore[assignment]
    try:
        return stand.controller()
    finally:
        stand.store, stand.service, stand.registry = store, service, registry


def ticked(stand: Stand, controller: Controller, is_first: bool) -> Status:
    for number in range(200):
        if number or not is_first:
            stand.clock.advance(TICK_S)
        status = controller.tick()
        if status.phase.is_over and stand.store.unfinished(status.service) is None:
            return status
    raise AssertionError(f"never over: {status}")


def killed_at(store: Store, number: int, effects: Mapping[str, Effect]) -> tuple[Stand, bool]:
    """A rollout whose first controller dies at its n-th effect; whether it got that far."""
    url = f"http://127.0.0.1:{number}"
    stand = Stand(store, effects, plan=QUICK, per_s=20.0, url=url)
    stand.begin()
    killer = Killer(number)
    controller, was_killed = mortal(stand, killer), False
    try:
        ticked(stand, controller, is_first=True)
    except SystemExit:
        was_killed = True
        ticked(stand, stand.controller(), is_first=True)
    return stand, was_killed


@pytest.mark.parametrize(
    ("effects", "end"),
    [({}, Phase.PROMOTED), ({"candidate": Effect(mismatch_share=0.1)}, Phase.ROLLED_BACK)],
)
def test_killed_at_any_effect_it_goes_the_same_way(
    tmp_path: Path, effects: Mapping[str, Effect], end: Phase
) -> None:
    store = Store(Database(sqlite_uri(tmp_path / "rollouts.db")))
    undisturbed, _ = killed_at(store, 0, effects)
    assert undisturbed.moves()[-1].phase is end
    number, was_killed = 0, True
    while was_killed:
        number += 1
        stand, was_killed = killed_at(store, number, effects)
        assert stand.way() == undisturbed.way(), number
        assert stand.aliases() == undisturbed.aliases(), number
        assert stand.service.plan.stable == undisturbed.service.plan.stable
        assert stand.service.state().releases.keys() == undisturbed.service.state().releases.keys()
        assert sorted(stand.service.calls) == sorted(undisturbed.service.calls), number
        runs = [run for run in stand.tracker.runs if run.kind == "rollout"]
        assert [run.status for run in runs] == ["FINISHED"], number
        tag = "rollout.confirmation.0123456789ab"
        uses = stand.registry.versions()[1].tags.get(tag, "").split(",")
        assert len(uses) == 1, number
    assert number > 20


def test_a_process_that_is_killed_is_followed_by_another_one(tmp_path: Path) -> None:
    """kill -9, over SQLite. Its service, in the same process, forgets everything each time."""
    database = sqlite_uri(tmp_path / "rollouts.db")
    store_lines: list[str] = []
    for wait_for in ("shadow", "canary", ""):
        child = subprocess.Popen(
            [sys.executable, str(CHILD), database], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for line in child.stdout:
            store_lines.append(line.strip())
            if wait_for and f" {wait_for}" in line:
                time.sleep(0.05)
                child.kill()
                break
        child.stdout.close()
        assert child.wait(30) == (-9 if wait_for else 0), store_lines
    told = json.loads(store_lines[-1])
    assert told["way"] == [list(step) for step in GOOD_WAY]
    assert told["plan"] == "candidate"
