"""The rollout that is active, as metric families of the page /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric

from outrider.console.ports import RolloutsSeen
from outrider.rollout.outlook import Outlook
from outrider.rollout.phase import Phase
from outrider.rollout.verdict import Finding, Verdict
from outrider.serving.families import gauge_of
from outrider.telemetry import live_meters as live
from outrider.telemetry.meter import Meter

STANDING: dict[Meter, Callable[[Outlook], float]] = {
    live.ROLLOUT_STEP: lambda active: active.step,
    live.ROLLOUT_WEIGHT: lambda active: active.weight,
    live.ROLLOUT_ELAPSED_S: lambda active: active.elapsed_s,
    live.ROLLOUT_PAUSED: lambda active: active.is_paused,
    live.ROLLOUT_WAITS: lambda active: bool(active.waits),
    live.ROLLOUT_STALLED: lambda active: active.has_stalled,
    live.ROLLOUT_CONTROLLED: lambda active: active.is_controlled,
}
SPANS: dict[Meter, Callable[[Finding], float | None]] = {
    live.ROLLOUT_ESTIMATE: lambda found: found.estimate,
    live.ROLLOUT_LOW: lambda found: found.low,
    live.ROLLOUT_HIGH: lambda found: found.high,
    live.ROLLOUT_BOUND: lambda found: found.bound,
}

Active = tuple[Outlook, ...]  # one, or none


def families(seen: RolloutsSeen) -> Iterator[Metric]:
    """`num_rollouts`; and of what is active the rest, whose families are empty without it."""
    newest = seen.newest
    active = (newest,) if newest is not None and not newest.is_over else ()
    yield _num_rollouts(seen)
    yield _phase(active)
    yield from _standing(active)
    yield _verdict(active)
    yield from _spans(active)


def _num_rollouts(seen: RolloutsSeen) -> Metric:
    family = gauge_of(live.NUM_ROLLOUTS, "phase")
    for phase in Phase:
        family.add_metric([phase.value], seen.num_by_phase.get(phase, 0))
    return family


def _phase(active: Active) -> Metric:
    family = gauge_of(live.ROLLOUT_PHASE, "candidate", "phase")
    for each in active:
        for phase in Phase:
            family.add_metric([each.candidate, phase.value], float(each.phase is phase))
    return family


def _standing(active: Active) -> Iterator[Metric]:
    for meter, of in STANDING.items():
        family = gauge_of(meter, "candidate")
        for each in active:
            family.add_metric([each.candidate], float(of(each)))
        yield family


def _verdict(active: Active) -> Metric:
    family = gauge_of(live.ROLLOUT_VERDICT, "candidate", "figure", "group", "verdict")
    for where, found in _findings(active):
        for verdict in Verdict:
            family.add_metric([*where, verdict.value], float(found.verdict is verdict))
    return family


def _spans(active: Active) -> Iterator[Metric]:
    """What is not known of a figure is left out."""
    for meter, of in SPANS.items():
        family = gauge_of(meter, "candidate", "figure", "group")
        for where, found in _findings(active):
            value = of(found)
            if value is not None:
                family.add_metric(where, value)
        yield family


def _findings(active: Active) -> Iterator[tuple[list[str], Finding]]:
    for each in active:
        for found in each.findings:
            yield [each.candidate, found.figure, found.group], found
