"""Watches the releases of a gateway, each on its own, and has their replicas decode plainly where
drafting does not pay over all of them (`guard_state`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from outrider.config.schema import ServingSettings
from outrider.core import Clock, SystemClock
from outrider.serving.guard import Guard, Transition
from outrider.serving.guard_state import GuardState, Phase, lasting
from outrider.serving.messages import Control, Pulse, Release

PERIOD_S = 0.5  # what a look shows is told to the replicas within 1 s of when it came about
MOST_TRANSITIONS = 1000  # that are kept for those who ask

_LOG = logging.getLogger(__name__)
_OFF = ServingSettings(fallback=False)


class Watch:
    """On one asyncio loop. Where `settings.fallback` is off, only `control` does something."""

    def __init__(
        self,
        releases: Callable[[], Mapping[str, Release]] = dict,
        settings: ServingSettings = _OFF,
        clock: Clock | None = None,
        *,
        period_s: float = PERIOD_S,
    ) -> None:
        """`period_s`: between two looks at a release."""
        self._releases = releases
        self._period_s = period_s
        self._settings = settings
        self._clock = clock or SystemClock()
        self._guards: dict[str, Guard] = {}
        self._locks: dict[str, asyncio.Lock] = {}  # an operator's word and the guard's in turn
        self._silent: set[str] = set()
        self._transitions: deque[Transition] = deque(maxlen=MOST_TRANSITIONS)
        self._counts: Counter[tuple[str, Phase]] = Counter()

    # -- what others ask ------------------------------------------------------------------------

    async def control(self, release: Release, control: Control) -> None:
        """An operator's word: it holds whatever the guard thought. Raises `Fault` as `Release`."""
        async with self._lock(release.name):
            if self._settings.fallback:
                before = self._guards.get(release.name, Guard())
                after = before.told(control, self._clock.monotonic())
                self._keep(release.name, before, after)
            await release.control(control)

    def told(self) -> dict[str, dict[str, Any]]:
        """By release: where its guard stands and why, as plain data."""
        return {name: self._told(name, guard.state) for name, guard in self._guards.items()}

    def transitions(self, after_s: float = 0.0) -> list[Transition]:
        """Those after a time (seconds since 1970), oldest first."""
        return [each for each in self._transitions if each.at_s > after_s]

    # -- the task -------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watches as long as this is open."""
        task = asyncio.ensure_future(self.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Until it is cancelled. A release that does not answer holds up no other one."""
        looks: dict[str, asyncio.Task[None]] = {}
        try:
            while self._settings.fallback:
                releases = dict(self._releases())
                for gone in self._guards.keys() - releases.keys():
                    del self._guards[gone]
                for name, release in releases.items():
                    if name not in looks or looks[name].done():
                        looks[name] = asyncio.ensure_future(self.look(release))
                await asyncio.sleep(self._period_s)
        finally:
            for look in looks.values():
                look.cancel()
            await asyncio.gather(*looks.values(), return_exceptions=True)

    async def look(self, release: Release) -> None:
        """Once. Never raises for what a release does."""
        try:
            async with self._lock(release.name):
                await self._see(release, await release.pulses())
            self._silent.discard(release.name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next look tries again
            if release.name not in self._silent:
                _LOG.warning("release %s can't be watched now: %r", release.name, error)
            self._silent.add(release.name)

    async def _see(self, release: Release, pulses: list[Pulse]) -> None:
        if not pulses:
            return
        now_s, name = self._clock.monotonic(), release.name
        before = self._guards.get(name)
        if before is None:
            before = Guard.resumed([pulse.control for pulse in pulses], now_s)
        after = before.after(pulses, self._settings, now_s)
        self._keep(name, before, after)
        # Not only behind a transition: a replica may have missed it, or have come just then.
        wanted = after.control(self._settings)
        if any(pulse.control != wanted for pulse in pulses):
            await release.control(wanted)

    def _keep(self, name: str, before: Guard, after: Guard) -> None:
        self._guards[name] = after
        state = after.state
        if state.phase is before.state.phase:
            return
        self._counts[name, state.phase] += 1
        transition = Transition(
            release=name, phase=state.phase, reason=state.reason, at_s=self._clock.time()
        )
        self._transitions.append(transition)
        _LOG.warning("%s", transition)

    def _told(self, name: str, state: GuardState) -> dict[str, Any]:
        held_s = self._clock.monotonic() - state.since_s
        return {
            "phase": state.phase.value,
            "sentence": state.phase.sentence,
            "reason": state.reason,
            "lasting": lasting(state, self._settings),
            "since_s": self._clock.time() - held_s,  # seconds since 1970
            "wait_s": state.wait_s,
            "transitions": {phase.value: self._counts[name, phase] for phase in Phase},
        }

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())
