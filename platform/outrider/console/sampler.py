"""Looks at the releases of a gateway every some seconds, for all pages and scrapes together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from outrider.console.course import Course
from outrider.core import Clock
from outrider.serving.health import Condition
from outrider.serving.messages import Release, ReplicaStats
from outrider.serving.service import Service

WAIT_S = 5.0  # for one look; a round of many rows takes a replica its time
CONDITIONS_WAIT_S = 2.0
CONDITIONS_EVERY = 3  # looks; what Serve tells costs its controller more than all replicas

_LOG = logging.getLogger(__name__)


class Sampler:
    """On the gateway's asyncio loop. A release that is slow to answer holds up no other one."""

    def __init__(self, *, period_s: float, keep_s: float, clock: Clock) -> None:
        self.course = Course(keep_s)
        self.conditions: Mapping[str, Condition] = {}
        self.stats: dict[str, tuple[ReplicaStats, ...]] = {}  # by release, of its last look
        self._period_s = period_s
        self._clock = clock
        self._num_rounds = 0
        self._troubles: dict[str, str] = {}  # by what is in trouble: a sentence

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._troubles.values())

    async def run(self, service: Service) -> None:
        """Until it is cancelled."""
        looks: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                running = await self._running(service)
                looks = {name: look for name, look in looks.items() if not look.done()}
                for name, release in running.items():
                    if name not in looks:
                        looks[name] = asyncio.ensure_future(self.look(service, release))
                await asyncio.sleep(self._period_s)
        finally:
            for look in looks.values():
                look.cancel()
            await asyncio.gather(*looks.values(), return_exceptions=True)

    async def look(self, service: Service, release: Release) -> None:
        """Once. Never raises for what a release does: a look that fails is a gap."""
        name, why = release.name, "no replica runs"
        stats: tuple[ReplicaStats, ...] = ()
        try:
            async with asyncio.timeout(WAIT_S):
                stats = tuple(await release.stats())
        except TimeoutError:
            why = f"no answer within {WAIT_S:g} s"
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look tries again
            why = type(error).__name__
        if name in service.fleet.cards:  # else it was taken away meanwhile
            self._see(service, name, stats, why)

    def _see(self, service: Service, name: str, stats: tuple[ReplicaStats, ...], why: str) -> None:
        self._tell(name, "" if stats else f"Release {name}: {why}.")
        self.stats[name] = stats
        guard = service.watch.told().get(name, {})
        self.course = self.course.after(
            name,
            stats,
            guard_phase=str(guard.get("phase", "")),
            at_s=self._clock.time(),
            now_s=self._clock.monotonic(),
        )

    async def _running(self, service: Service) -> Mapping[str, Release]:
        """Whom to ask. Where Serve keeps silent, its replicas need not."""
        self._num_rounds += 1
        if not self.conditions or self._num_rounds % CONDITIONS_EVERY == 0:
            await self._ask_conditions(service)
        if not self.conditions:
            return dict(service.desk.releases)
        running = service.fleet.running(self.conditions)
        self._forget(set(self.stats) - set(running))
        return running

    async def _ask_conditions(self, service: Service) -> None:
        trouble = ""
        try:
            async with asyncio.timeout(CONDITIONS_WAIT_S):
                self.conditions = await service.fleet.conditions()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next one may be told
            self.conditions = {}
            trouble = f"Serve does not say how the releases are ({type(error).__name__})."
        self._tell("", trouble)

    def _forget(self, gone: set[str]) -> None:
        """What starts or failed is no trouble of ours: its condition says so."""
        for name in gone:
            del self.stats[name]
            self._troubles.pop(name, None)
        self.course = self.course.without(gone)

    def _tell(self, whom: str, trouble: str) -> None:
        if not trouble:
            self._troubles.pop(whom, None)
            return
        if self._troubles.get(whom) != trouble:
            _LOG.warning("the console can't look: %s", trouble)
        self._troubles[whom] = trouble
