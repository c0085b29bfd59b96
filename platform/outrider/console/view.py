"""The gateway's own things and what was read of others, as the page shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from outrider.config.schema import ConsoleSettings
from outrider.console.reading import Reading
from outrider.console.snapshot import (
    ArmView,
    ReleaseView,
    ReplicaView,
    RunsView,
    ServiceView,
    Snapshot,
)
from outrider.serving.messages import ReplicaStats
from outrider.serving.service import Service

UNKNOWN = "unknown"  # health of a release that Serve does not tell of
SILENT = "Its engine does not answer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What stays the same while a gateway runs."""

    settings: ConsoleSettings
    runs: RunsView
    version: str  # of Outrider
    began_s: float


def snapshot(
    server: Server, service: Service, reading: Reading, *, at_s: float, after_s: float = 0.0
) -> Snapshot:
    """`after_s`: only points that ended after that time (seconds since 1970)."""
    return Snapshot(
        at_s=at_s,
        service=_service(server, service, reading.run_id),
        arms=tuple(_arms(service)),
        releases=tuple(_releases(service, reading)),
        replicas=tuple(_replica(each) for some in reading.stats.values() for each in some),
        points=reading.course.since(after_s),
        period_s=server.settings.period_s,
        keep_s=server.settings.keep_s,
        rollout=reading.rollouts.newest,
        past=reading.rollouts.past,
        jobs=reading.jobs,
        runs=server.runs,
        needs_key=not service.admin_keys.is_open,
        notes=reading.notes,
    )


def _service(server: Server, service: Service, run_id: str) -> ServiceView:
    return ServiceView(
        name=service.settings.name,
        model=service.model,
        url=server.settings.url,
        version=server.version,
        began_s=server.began_s,
        num_calls=service.desk.num_calls,
        is_leaving=service.desk.is_leaving,
        run_id=run_id,
    )


def _arms(service: Service) -> Iterator[ArmView]:
    shares = service.desk.shares
    for arm, release, weight in service.desk.plan.arms:
        yield ArmView(
            arm=arm.value,
            release=release,
            weight=weight,
            achieved_ratio=shares.ratio(arm),
            num_requests=shares.now[arm],
        )


def _releases(service: Service, reading: Reading) -> Iterator[ReleaseView]:
    """Stable, then the candidate, then whoever else is there."""
    plan, guards = service.desk.plan, service.watch.told()
    first = {plan.stable: 0, plan.candidate: 1}
    for name in sorted(service.fleet.cards, key=lambda name: (first.get(name, 2), name)):
        condition, guard = reading.conditions.get(name), guards.get(name, {})
        yield ReleaseView(
            name=name,
            fingerprint=service.fleet.fingerprint(name),
            health=condition.health.value if condition else UNKNOWN,
            message=condition.message if condition else "",
            guard_phase=guard.get("phase", ""),
            guard_sentence=guard.get("sentence", ""),
            guard_reason=guard.get("reason", ""),
            guard_since_s=guard.get("since_s"),
            guard_wait_s=guard.get("wait_s", 0.0),
            num_replicas=len(reading.stats.get(name, ())),
        )


def _replica(stats: ReplicaStats) -> ReplicaView:
    return ReplicaView(
        release=stats.release,
        replica=stats.replica,
        mode=stats.mode.value,
        max_draft_length=stats.max_draft_length,
        breaker_phase=stats.breaker_phase,
        breaker_sentence=stats.breaker_sentence if stats.breaker_phase else SILENT,
        num_open_rows=stats.num_open_rows,
        num_running=stats.num_running,
        num_waiting=stats.num_waiting,
        max_waiting=stats.max_waiting,
        num_free_blocks=stats.num_free_blocks,
        num_blocks=stats.num_blocks,
    )
