"""What Prometheus hears of rollouts, bulk jobs and lineage: as its own parser reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from outrider.bulk.glance import JobGlance, JobState
from outrider.console import bulk_metrics, lineage_metrics, rollout_metrics
from outrider.console.ports import RolloutsSeen
from outrider.console.snapshot import ArmView, ReleaseView, ServiceView, Snapshot
from outrider.rollout.outlook import Outlook
from outrider.rollout.phase import Phase
from outrider.rollout.verdict import Finding, Verdict
from outrider.telemetry.meters import METERS

CANARY = Outlook(
    rollout_id="r1",
    candidate="new",
    candidate_fingerprint="f-new",
    stable="old",
    stable_fingerprint="f-old",
    phase=Phase.CANARY,
    sentence="",
    is_over=False,
    began_s=1000.0,
    elapsed_s=12.0,
    step=1,
    weight=0.25,
    has_stalled=True,
    is_controlled=True,
    findings=(
        Finding(
            figure="tokens_per_s",
            verdict=Verdict.PASS,
            bound=0.95,
            reason="",
            estimate=1.1,
            low=1.0,
            high=1.2,
        ),
        Finding(
            figure="failure_ratio",
            verdict=Verdict.INCONCLUSIVE,
            bound=0.02,
            reason="",
            group="chat",
        ),
    ),
)
JOB = JobGlance(
    name="reviews",
    job_dir="/data/reviews",
    state=JobState.RUNNING,
    num_rows=100,
    num_rows_done=40,
    num_rows_failed=2,
    began_s=1000.0,
    at_s=1010.0,
)


Shown = dict[str, dict[tuple[str, ...], float]]


def shown(families: Iterable[Metric]) -> Shown:
    """Family -> values of its labels, by the labels' names -> value. No series comes twice."""

    class Once:
        def collect(self) -> list[Metric]:
            return list(families)

    registry = CollectorRegistry()
    registry.register(Once())
    found: Shown = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        meter = METERS[family.name.removeprefix("outrider_")]
        assert family.documentation == meter.help
        samples = found.setdefault(family.name, {})
        for sample in family.samples:
            where = tuple(sample.labels.values())
            assert where not in samples
            samples[where] = sample.value
    return found


def test_an_active_rollout_is_told_with_its_verdicts() -> None:
    seen = RolloutsSeen(newest=CANARY, num_by_phase={Phase.CANARY: 1, Phase.PROMOTED: 3})
    told = shown(rollout_metrics.families(seen))
    assert told["outrider_num_rollouts"][("promoted",)] == 3
    assert told["outrider_num_rollouts"][("failed",)] == 0
    phases = told["outrider_rollout_phase"]
    assert phases[("new", "canary")] == 1
    assert sum(phases.values()) == 1
    assert len(phases) == len(Phase)
    standing = {
        "step": 1.0,
        "weight": 0.25,
        "elapsed_s": 12.0,
        "paused": 0.0,
        "waits": 0.0,
        "stalled": 1.0,
        "controlled": 1.0,
    }
    assert {name: told[f"outrider_rollout_{name}"] for name in standing} == {
        name: {("new",): value} for name, value in standing.items()
    }
    speed, failures = ("new", "tokens_per_s", ""), ("new", "failure_ratio", "chat")
    assert told["outrider_rollout_verdict"][(*speed, "pass")] == 1
    assert told["outrider_rollout_verdict"][(*speed, "fail")] == 0
    assert told["outrider_rollout_low"] == {speed: 1.0}  # what is not known is left out
    assert told["outrider_rollout_bound"] == {speed: 0.95, failures: 0.02}


def test_what_is_over_is_only_counted() -> None:
    over = replace(CANARY, phase=Phase.PROMOTED, is_over=True)
    for newest in (over, None):
        told = shown(rollout_metrics.families(RolloutsSeen(newest=newest)))
        assert all(not samples for name, samples in told.items() if "num_rollouts" not in name)
        assert len(told) > 10


def test_a_job_counts_from_the_moment_that_it_is_there() -> None:
    told = shown(bulk_metrics.families((JOB,)))
    job = ("reviews",)
    assert told["outrider_bulk_num_rows"] == {job: 100}
    assert told["outrider_bulk_num_rows_done"] == {job: 40}
    assert told["outrider_bulk_num_rows_failed"] == {job: 2}
    assert told["outrider_bulk_is_running"] == {job: 1}
    assert told["outrider_bulk_eta_s"] == {}
    assert told["outrider_bulk_num_evaluated_tokens"] == {job: 0}
    ended = replace(JOB, state=JobState.FINISHED, num_evaluated_tokens=9, eta_s=0.0)
    told = shown(bulk_metrics.families((ended,)))
    assert told["outrider_bulk_is_running"] == {job: 0}
    assert told["outrider_bulk_eta_s"] == {job: 0}
    assert told["outrider_bulk_num_evaluated_tokens"] == {job: 9}


def test_two_folders_of_one_name_are_two_series() -> None:
    twin = replace(JOB, job_dir="/other/reviews", num_rows=7)
    told = shown(bulk_metrics.families((JOB, twin, replace(JOB, name="letters"))))
    rows = {label: num for (label,), num in told["outrider_bulk_num_rows"].items()}
    assert (len(rows), rows.pop("letters")) == (3, 100)
    assert sorted(rows.values()) == [7, 100]
    assert all(label.startswith("reviews-") and "/" not in label for label in rows)


def test_releases_are_told_with_their_arm_and_fingerprint() -> None:
    service = ServiceView(
        name="main", model="m", url="", version="1.2", began_s=0.0, run_id="run-7"
    )
    arm = ArmView(arm="stable", release="old", weight=1.0, achieved_ratio=None, num_requests=0)
    releases = tuple(
        ReleaseView(
            name=name,
            fingerprint=f"f-{name}",
            health=health,
            message="",
            guard_phase="",
            guard_sentence="",
            guard_reason="",
            guard_since_s=None,
            guard_wait_s=0.0,
            num_replicas=1,
        )
        for name, health in (("old", "ready"), ("new", "starting"))
    )
    snapshot = Snapshot(at_s=1.0, service=service, arms=(arm,), releases=releases)
    told = shown(lineage_metrics.families(snapshot))
    assert told["outrider_release_info"] == {
        ("stable", "f-old", "ready", "old"): 1,
        ("", "f-new", "starting", "new"): 1,
    }
    assert told["outrider_gateway_info"] == {("m", "run-7", "1.2"): 1}
