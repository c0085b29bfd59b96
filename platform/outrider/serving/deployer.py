"""Starts and takes away the replicas of a release beside those that serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from outrider.core import UserError
from outrider.serving.health import Condition, Health
from outrider.serving.local import LocalRelease
from outrider.serving.messages import Release

DRAIN_LOOK_S = 0.02


class Deployer(Protocol):
    """Every method may be called again with the same effect."""

    async def start(self, name: str, settings: Mapping[str, Any], cpus: int) -> None:
        """Begin to; nothing where it is there.

        `settings` of a ServeJob, plain; `cpus` of one replica.
        """
        ...

    async def conditions(self, names: Collection[str]) -> dict[str, Condition]:
        """Of those that were begun: one whose start was lost with its gateway is left out."""
        ...

    async def stop(self, name: str) -> None:
        """It ends what is in flight, then it goes. Does not wait for that."""
        ...

    def open(self, name: str) -> Release:
        """Calls wait where it does not run yet."""
        ...


class LocalDeployer:
    """Releases in this process. One that can't be made has failed."""

    def __init__(
        self,
        make: Callable[[str, Mapping[str, Any]], LocalRelease],
        there: Iterable[LocalRelease] = (),
    ) -> None:
        """`make(name, settings)` starts one; UserError says why it can't. `there`: that run."""
        self._make = make
        self._releases = {release.name: release for release in there}
        self._failed: dict[str, str] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def start(self, name: str, settings: Mapping[str, Any], cpus: int) -> None:
        if name in self._releases:
            return
        try:
            self._releases[name] = await asyncio.to_thread(self._make, name, settings)
            self._failed.pop(name, None)
        except UserError as error:
            self._failed[name] = str(error)

    async def conditions(self, names: Collection[str]) -> dict[str, Condition]:
        there = {name: Condition(Health.READY) for name in self._releases}
        failed = {name: Condition(Health.FAILED, why) for name, why in self._failed.items()}
        return {name: each for name, each in {**there, **failed}.items() if name in names}

    async def stop(self, name: str) -> None:
        self._failed.pop(name, None)
        release = self._releases.pop(name, None)
        if release is not None:
            task = asyncio.get_running_loop().create_task(_drain(release))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def open(self, name: str) -> Release:
        return self._releases.get(name) or LocalRelease(name, ())


async def _drain(release: LocalRelease) -> None:
    while release.num_calls:
        await asyncio.sleep(DRAIN_LOOK_S)
    await asyncio.to_thread(release.close)
