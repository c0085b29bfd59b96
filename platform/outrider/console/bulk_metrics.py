"""Bulk jobs, as metric families of the page /metrics."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric

from outrider.bulk.glance import JobGlance, JobState
from outrider.serving.families import counter_of, gauge_of
from outrider.telemetry import live_meters as live
from outrider.telemetry.meter import Meter

LABEL = "bulk_job"  # `job` is Prometheus' own, of what it scrapes

Jobs = tuple[JobGlance, ...]
GAUGES: dict[Meter, Callable[[JobGlance], float | None]] = {
    live.BULK_NUM_ROWS: lambda job: job.num_rows,
    live.BULK_NUM_ROWS_DONE: lambda job: job.num_rows_done,
    live.BULK_NUM_ROWS_FAILED: lambda job: job.num_rows_failed,
    live.BULK_IS_RUNNING: lambda job: float(job.state is JobState.RUNNING),
    live.BULK_ETA_S: lambda job: job.eta_s,
}
COUNTERS: dict[Meter, Callable[[JobGlance], int]] = {
    live.BULK_NUM_EMITTED_TOKENS: lambda job: job.num_emitted_tokens,
    live.BULK_NUM_EVALUATED_TOKENS: lambda job: job.num_evaluated_tokens,
    live.BULK_NUM_ACCEPTED_TOKENS: lambda job: job.num_accepted_tokens,
}


def families(jobs: Jobs) -> Iterator[Metric]:
    """What is not known of a job is left out."""
    labels = _labels(jobs)
    for meter, of in GAUGES.items():
        gauge = gauge_of(meter, LABEL)
        for label, job in zip(labels, jobs, strict=True):
            value = of(job)
            if value is not None:
                gauge.add_metric([label], value)
        yield gauge
    for meter, count in COUNTERS.items():
        counter = counter_of(meter, LABEL)
        for label, job in zip(labels, jobs, strict=True):
            counter.add_metric([label], count(job))
        yield counter


def _labels(jobs: Jobs) -> list[str]:
    """Names of folders; where two have one, a digest of the path goes with it: no series twice,
    and no path for whoever may read the page.
    """
    named = Counter(job.name for job in jobs)
    return [job.name if named[job.name] == 1 else f"{job.name}-{_digest(job)}" for job in jobs]


def _digest(job: JobGlance) -> str:
    return hashlib.sha256(job.job_dir.encode()).hexdigest()[:8]
