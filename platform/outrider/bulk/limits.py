"""What the figures of a bulk job may be, before anything is touched."""

from __future__ import annotations

from outrider.cluster.cores import is_given, num_cores
from outrider.config.schema import BulkJob
from outrider.core import UserError


def check_settings(job: BulkJob) -> None:
    """Raise UserError naming the key of a figure that can't be."""
    least = {"shard_rows": 1, "num_workers": 1, "cpus_per_worker": 0, "limit": 0}
    for name, lowest in least.items():
        value = getattr(job.bulk, name)
        if value < lowest:
            raise UserError(f"bulk.{name} must be at least {lowest}, got {value}")
    if not job.bulk.job_dir:
        raise UserError("bulk.job_dir is empty: name a folder for the job")
    cores = num_cores()
    if job.bulk.cpus_per_worker > cores and not is_given():
        wanted = job.bulk.cpus_per_worker
        raise UserError(f"bulk.cpus_per_worker is {wanted}, this machine has {cores}: lower it")
