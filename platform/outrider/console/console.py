"""The console as an addition to a gateway: one look at everything serves all pages and scrapes."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from typing import Any

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from outrider.config.schema import ConsoleSettings
from outrider.console.assets import Assets
from outrider.console.bulk_metrics import families as bulk_families
from outrider.console.lineage_metrics import families as lineage_families
from outrider.console.order import Order
from outrider.console.page import add_page
from outrider.console.ports import (
    BulkJobs,
    NoBulkJobs,
    NoRollouts,
    NoRuns,
    Rollouts,
    RolloutsSeen,
    Runs,
)
from outrider.console.reading import Reading
from outrider.console.rollout_metrics import families as rollout_families
from outrider.console.sampler import Sampler
from outrider.console.snapshot import Snapshot
from outrider.console.source import Source
from outrider.console.view import Server, snapshot
from outrider.core import Clock, Fault, SystemClock
from outrider.serving.service import Service

LOOK_S = 1.0  # between two looks at rollouts and jobs
ORDER_WAIT_S = 10.0

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is read beside the gateway."""

    rollouts: Rollouts = field(default_factory=NoRollouts)
    jobs: BulkJobs = field(default_factory=NoBulkJobs)
    runs: Runs = field(default_factory=NoRuns)


class Console:
    """Lives in the gateway, on its asyncio loop. For one service."""

    def __init__(
        self,
        settings: ConsoleSettings,
        beside: Beside,
        assets: Assets,
        clock: Clock | None = None,
        *,
        look_s: float = LOOK_S,
    ) -> None:
        """`settings` with every address and folder said; `look_s`: seconds between looks beside."""
        self._clock = clock or SystemClock()
        self._server = Server(
            settings=settings,
            runs=beside.runs.view,
            version=version("outrider"),
            began_s=self._clock.time(),
        )
        self._beside = beside
        self._assets = assets
        self._look_s = look_s
        self._service: Service | None = None
        self._sampler = Sampler(
            period_s=settings.period_s, keep_s=settings.keep_s, clock=self._clock
        )
        self._rollouts = Source("rollouts", beside.rollouts.look)
        self._jobs = Source("bulk jobs", beside.jobs.look)
        self._run = Source("the run of this server", beside.runs.run_id)

    # -- as an addition -------------------------------------------------------------------------

    def add(self, api: FastAPI, service: Service) -> None:
        self._service = service
        add_page(api, service, self, self._assets)

    def collect(self) -> Iterable[Metric]:
        """Out of the last look: nothing is asked while Prometheus waits."""
        try:
            return list(self._families())
        except Exception:  # noqa: BLE001 - a scrape shows the rest
            _LOG.exception("the console's families are left out")
            return []

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncGenerator[None]:
        tasks = [
            asyncio.ensure_future(self._sampler.run(service)),
            *(asyncio.ensure_future(self._keep(each)) for each in self._sources),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- what the page asks ---------------------------------------------------------------------

    def snapshot(self, after_s: float = 0.0) -> Snapshot:
        assert self._service is not None
        at_s = self._clock.time()
        return snapshot(self._server, self._service, self._reading, at_s=at_s, after_s=after_s)

    async def order(self, order: Order) -> str:
        """It is shown with the next look, which is taken at once."""
        try:
            async with asyncio.timeout(ORDER_WAIT_S):
                said = await asyncio.to_thread(self._beside.rollouts.order, order)
        except TimeoutError as error:
            raise Fault(
                f"{order.verb}: no answer within {ORDER_WAIT_S:g} s; it may be written down: look "
                "before you ask again"
            ) from error
        await self._rollouts.read()
        return said

    # -- the looks ------------------------------------------------------------------------------

    @property
    def _sources(self) -> tuple[Source[Any], ...]:
        return self._rollouts, self._jobs, self._run

    @property
    def _reading(self) -> Reading:
        return Reading(
            course=self._sampler.course,
            conditions=self._sampler.conditions,
            stats=dict(self._sampler.stats),
            rollouts=self._rollouts.value or RolloutsSeen(),
            jobs=self._jobs.value or (),
            run_id=self._run.value or "",
            notes=(*self._sampler.notes, *(each.note for each in self._sources if each.note)),
        )

    async def _keep(self, source: Source[Any]) -> None:
        while True:
            await source.read()
            await asyncio.sleep(self._look_s)

    def _families(self) -> Iterable[Metric]:
        seen, jobs = self._rollouts.value, self._jobs.value
        return chain(
            lineage_families(self.snapshot(math.inf)),
            rollout_families(seen) if seen is not None else (),
            bulk_families(jobs) if jobs is not None else (),
        )
