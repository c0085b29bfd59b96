"""The releases of one gateway and the plan between them: changed by operators and rollouts, kept
where the gateway's death does not reach.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outrider.core import UserError
from outrider.serving.deployer import Deployer
from outrider.serving.desk import Desk
from outrider.serving.health import Condition, Health
from outrider.serving.kept import (
    OWNER,
    Card,
    Kept,
    forget_all,
    forget_release,
    keep_plan,
    keep_release,
    kept_plan,
    kept_releases,
)
from outrider.serving.messages import Release
from outrider.serving.mirror import Mirror
from outrider.serving.split import Plan

SANE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class UnknownReleaseError(UserError):
    """There is no release of that name."""


class ConflictError(UserError):
    """It would contradict what is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A release that is to be started."""

    fingerprint: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # of a ServeJob, plain
    cpus: int = 1  # of one replica

    @property
    def card(self) -> Card:
        engine = self.settings.get("engine") or {}
        rule = str(engine.get("rule", "coupled")).lower()
        return Card(fingerprint=self.fingerprint, is_coupled=rule == "coupled")


class Fleet:
    """On the gateway's asyncio loop. One change at a time; calls go on meanwhile."""

    def __init__(
        self, desk: Desk, deployer: Deployer, kept: Kept, cards: Mapping[str, Card]
    ) -> None:
        self.desk = desk
        self.cards = dict(cards)  # by release
        self.shadows = Mirror(desk, self._are_coupled)
        self._deployer = deployer
        self._kept = kept
        self._lock = asyncio.Lock()

    async def put_plan(self, plan: Plan) -> Plan:
        """The plan in force afterwards: one that comes too late changes nothing.

        UserError names a release that is not there.
        """
        async with self._lock:
            if plan.revision <= self.desk.plan.revision:
                return self.desk.plan
            for key, name in (("stable", plan.stable), ("candidate", plan.candidate)):
                if name is not None and name not in self.desk.releases:
                    raise UserError(f"{key}: no release {name!r} here; there is {self._names}")
            await asyncio.to_thread(keep_plan, self._kept, plan)
            self.desk.put(plan)
            return plan

    async def deploy(self, name: str, order: Order) -> None:
        """Begin to start it; nothing where it is there. ConflictError where another one is."""
        async with self._lock:
            card = self.cards.get(name)
            if card is None:
                if not SANE_NAME.fullmatch(name):
                    raise UserError(f"name: letters, digits, - and _ only, got {name[:80]!r}")
                card = order.card
                await asyncio.to_thread(keep_release, self._kept, name, card)
                self.cards[name] = card
            if card.fingerprint != order.fingerprint:
                raise ConflictError(
                    f"release {name} is here as {card.fingerprint}; take it away first"
                )
            await self._deployer.start(name, order.settings, order.cpus)
            if name not in self.desk.releases:
                self.desk.releases[name] = self._deployer.open(name)

    async def remove(self, name: str) -> None:
        """It ends what is in flight and goes. ConflictError where the plan names it."""
        async with self._lock:
            self.card(name)
            if name in (self.desk.plan.stable, self.desk.plan.candidate):
                raise ConflictError(f"release {name} is in the plan; take it out of that first")
            await self._deployer.stop(name)
            await asyncio.to_thread(forget_release, self._kept, name)
            del self.cards[name]
            self.desk.releases.pop(name, None)

    async def conditions(self) -> dict[str, Condition]:
        """Of every release."""
        return await self._deployer.conditions(tuple(self.cards))

    def running(self, conditions: Mapping[str, Condition]) -> dict[str, Release]:
        """Releases that can be asked something: one that starts would keep us waiting."""
        there = {name for name, each in conditions.items() if each.health is Health.READY}
        return {name: each for name, each in self.desk.releases.items() if name in there}

    def card(self, name: str) -> Card:
        """UnknownReleaseError where there is none."""
        if name not in self.cards:
            raise UnknownReleaseError(f"no release {name[:80]!r} here; there is {self._names}")
        return self.cards[name]

    def fingerprint(self, name: str) -> str:
        """Empty where it has been taken away since."""
        return self.cards[name].fingerprint if name in self.cards else ""

    @property
    def _names(self) -> str:
        return ", ".join(sorted(self.cards))

    def _are_coupled(self, one: str, other: str) -> bool:
        return all(name in self.cards and self.cards[name].is_coupled for name in (one, other))


def open_fleet(
    first: str,
    card: Card,
    *,
    owner: str,
    deployer: Deployer,
    kept: Kept,
    most_calls: int,
    deadline_s: float,
) -> Fleet:
    """As its last gateway left it; release `first` alone where `owner` never had one.

    `owner`: whose service it is. What another one left here is forgotten.
    """
    if (kept.read(OWNER) or {}).get("owner") != owner:
        forget_all(kept)
        keep_plan(kept, Plan(stable=first))
        keep_release(kept, first, card)
        kept.write(OWNER, {"owner": owner})  # last: a death before it begins anew
    cards = kept_releases(kept)
    releases = {name: deployer.open(name) for name in cards}
    plan = kept_plan(kept) or Plan(stable=first)
    desk = Desk(releases, plan, most_calls=most_calls, deadline_s=deadline_s)
    return Fleet(desk, deployer, kept, cards)
