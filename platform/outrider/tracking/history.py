"""What was recorded, read back: the Protocol that comparisons are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run of the store. `params`, `tags` and `metrics` (last values) have dotted names."""

    run_id: str
    name: str
    kind: str  # serve, bulk, bench, contender, sweep
    status: str  # FINISHED, FAILED, KILLED, RUNNING
    started_s: float  # seconds since the epoch
    parent_id: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


class History(Protocol):
    """Every method raises Fault while the store is away."""

    def runs(self, kinds: Sequence[str] = ()) -> Sequence[RecordedRun]:
        """Runs of these kinds (none given: all), newest first."""

    def run(self, run_id: str) -> RecordedRun:
        """UserError where there is none."""

    def fetch(self, run_id: str, artifact: str, folder: Path) -> Path:
        """A copy of one artifact in `folder`. Fault where the run has none of that name."""
