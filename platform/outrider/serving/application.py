"""A release as a Serve application: replicas of one engine, without a route of their own."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import Fault
from outrider.openai.call import Call
from outrider.serving.kept import kept_control
from outrider.serving.messages import Control, Events, Pulse, ReplicaStats
from outrider.serving.ports import OpenEngine
from outrider.serving.ray_kept import RayKept
from outrider.serving.release import DEPLOYMENT
from outrider.serving.replica import Replica
from outrider.serving.stats_exporter import StatsExporter

SPARE_REQUESTS = 16  # beyond rows and queue: these are answered 429 by the replica itself
HEALTH_WAIT_S = 10.0
DRAIN_STEP_S = 0.5
STALLED = 70  # exit status

_LOG = logging.getLogger(__name__)


class ServedReplica:
    """A `Replica` as Serve calls it."""

    def __init__(
        self, open_engine: OpenEngine, settings: ServingSettings, engine: EngineSettings
    ) -> None:
        name = serve.get_replica_context().replica_id.unique_id
        self._release = settings.name
        self._replica = Replica(open_engine, settings, engine, name=name)
        self._has_read_control = False
        self._exporter = StatsExporter(settings.name, name)

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        await self._read_control()
        async with aclosing(self._replica.stream(call)) as stream:
            async for events in stream:
                yield events

    async def complete(self, call: Call) -> Events:
        await self._read_control()
        return await self._replica.complete(call)

    async def control(self, control: Control) -> None:
        self._has_read_control = True
        self._replica.set_control(control)

    async def stats(self) -> ReplicaStats:
        await self._read_control()
        return await self._replica.stats(self._release)

    async def pulse(self) -> Pulse:
        await self._read_control()
        return self._replica.pulse()

    def record_autoscaling_stats(self) -> dict[str, float]:
        return self._replica.autoscaling_stats()

    async def check_health(self) -> None:
        """End the process where the engine stands still; else tell Ray's metrics what it did.

        Only telling Serve would drain the replica first: its cores, which the next one needs,
        and its calls would wait for what no longer moves, as long as `deadline_s`. A dead
        process is replaced at once, and its calls are tried elsewhere.
        """
        try:
            self._replica.check_health()
        except Fault:
            _LOG.exception("this replica ends, so that it is replaced")
            os._exit(STALLED)
        self._exporter.see(await self._replica.stats(self._release))

    async def _read_control(self) -> None:
        """Before the first call: what was said before this replica came."""
        if self._has_read_control:
            return
        try:
            control = await asyncio.to_thread(kept_control, RayKept(), self._release)
        except Fault:  # the next call looks again
            _LOG.exception("release %s decodes as it was made", self._release)
            return
        if not self._has_read_control:  # else a newer one came while this was under way
            self._has_read_control = True
            self._replica.set_control(control)

    def __del__(self) -> None:
        replica = getattr(self, "_replica", None)
        if replica is not None:
            replica.close()


def release_application(
    open_engine: OpenEngine, settings: ServingSettings, engine: EngineSettings, *, num_cpus: float
) -> Any:
    """`num_cpus`: Ray CPUs of one replica, which are also its threads."""
    options = deployment_options(settings, engine, num_cpus)
    return serve.deployment(name=DEPLOYMENT, **options)(ServedReplica).bind(
        open_engine, settings, engine
    )


def deployment_options(
    settings: ServingSettings, engine: EngineSettings, num_cpus: float
) -> dict[str, Any]:
    """Every bound is said: Serve's own are 5 at a time and no end to the queue."""
    most = max(settings.max_replicas, settings.num_replicas)
    options: dict[str, Any] = {
        "ray_actor_options": {"num_cpus": num_cpus},
        "max_ongoing_requests": engine.max_rows + settings.max_queue + SPARE_REQUESTS,
        "max_queued_requests": settings.max_queue + 1,
        "health_check_period_s": settings.health_period_s,
        "health_check_timeout_s": HEALTH_WAIT_S,
        "graceful_shutdown_timeout_s": settings.deadline_s,
        "graceful_shutdown_wait_loop_s": DRAIN_STEP_S,
        "request_router_config": RequestRouterConfig(
            request_router_class="outrider.serving.router:PrefixRouter",
            request_router_kwargs={
                "num_tokens": settings.affinity_tokens,
                "slack": settings.affinity_slack,
            },
        ),
    }
    if most == settings.num_replicas:
        return {**options, "num_replicas": settings.num_replicas}
    return {**options, "autoscaling_config": _autoscaling(settings, most)}


def _autoscaling(settings: ServingSettings, most: int) -> AutoscalingConfig:
    return AutoscalingConfig(
        min_replicas=settings.num_replicas,
        initial_replicas=settings.num_replicas,
        max_replicas=most,
        policy=AutoscalingPolicy(
            policy_function="outrider.serving.autoscaling:LoadPolicy",
            policy_kwargs={"target_tokens": float(settings.target_load_tokens)},
        ),
    )
