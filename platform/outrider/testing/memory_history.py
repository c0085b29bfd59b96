"""The runs of a MemoryTracker, read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outrider.core import Fault, UserError
from outrider.testing.memory_tracker import MemoryRun, MemoryTracker
from outrider.tracking.history import RecordedRun


class MemoryHistory:
    """`history.History` over what `tracker` was told. Run number n began n seconds in."""

    def __init__(self, tracker: MemoryTracker) -> None:
        self._tracker = tracker

    def runs(self, kinds: Sequence[str] = ()) -> Sequence[RecordedRun]:
        found = [_recorded(run, at) for at, run in enumerate(self._tracker.runs)]
        return [run for run in reversed(found) if not kinds or run.kind in kinds]

    def run(self, run_id: str) -> RecordedRun:
        for run in self.runs():
            if run.run_id == run_id:
                return run
        raise UserError(f"there is no run {run_id!r} in memory")

    def fetch(self, run_id: str, artifact: str, folder: Path) -> Path:
        for run in self._tracker.runs:
            if run.run_id == run_id and artifact in run.artifacts:
                copy = folder / artifact
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(run.artifacts[artifact])
                return copy
        raise Fault(f"run {run_id} has no artifact {artifact}")


def _recorded(run: MemoryRun, at: int) -> RecordedRun:
    metrics = {name: value for _, _, window in run.windows for name, value in window.items()}
    return RecordedRun(
        run_id=run.run_id,
        name=run.name,
        kind=run.kind,
        status=run.status or "RUNNING",
        started_s=float(at),
        parent_id=run.parent_id,
        params=dict(run.params),
        tags=dict(run.tags),
        metrics=metrics | run.final,
    )
