"""What decodes in a bulk job, with the workers that it is spread over."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.bulk.placement import cpus_per_worker
from outrider.cluster.cores import num_cores
from outrider.config.schema import BulkJob
from outrider.models import HeadFiles, ModelFiles
from outrider.tracking import release
from outrider.tracking.provenance import Provenance


def make_release(
    settings: BulkJob,
    target: ModelFiles,
    draft: ModelFiles | HeadFiles | None,
    provenance: Provenance,
    words: Sequence[str] = (),
) -> release.Release:
    """`words`: the overrides that the user typed."""
    resources = {
        "cores_per_worker": cpus_per_worker(settings.bulk, num_cores()),
        "num_workers": settings.bulk.num_workers,
    }
    return release.make_release(settings, target, draft, provenance, words, resources)
