"""What runs here, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from outrider.console.snapshot import Snapshot
from outrider.serving.families import gauge_of
from outrider.telemetry import live_meters as live


def families(snapshot: Snapshot) -> Iterator[Metric]:
    yield _releases(snapshot)
    yield _gateway(snapshot)


def _releases(snapshot: Snapshot) -> Metric:
    """A release that is in no arm has an empty one: it starts, or is kept for a while."""
    arms = {each.release: each.arm for each in snapshot.arms}
    family = gauge_of(live.RELEASE_INFO, "release", "arm", "fingerprint", "health")
    for each in snapshot.releases:
        arm = arms.get(each.name, "")
        family.add_metric([each.name, arm, each.fingerprint, each.health], 1)
    return family


def _gateway(snapshot: Snapshot) -> Metric:
    service = snapshot.service
    family = gauge_of(live.GATEWAY_INFO, "version", "model", "run")
    family.add_metric([service.version, service.model, service.run_id], 1)
    return family
