"""The bulk jobs of this machine, by their beacons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outrider.bulk.glance import JobGlance, all_jobs


@dataclass(frozen=True, slots=True)
class LitJobs:
    """`ports.BulkJobs`."""

    beacons_dir: Path

    def look(self) -> tuple[JobGlance, ...]:
        return all_jobs(self.beacons_dir)
