"""Runs that stay in memory, for tests to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outrider.tracking.fingerprint import flatten
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.tracker import NO_TAGS, Run, RunStatus


class MemoryRun:
    """A run that stays in memory, for tests to read."""

    def __init__(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str],
        parent_id: str = "",
    ) -> None:
        self.run_id = run_id
        self.name = name
        self.kind = kind
        self.params = flatten(params)
        self.tags = dict(tags)
        self.parent_id = parent_id
        self.registered: list[ReleaseRecord] = []
        self.windows: list[tuple[int, float, dict[str, float]]] = []  # step, at_s, metrics
        self.final: dict[str, float] = {}
        self.artifacts: dict[str, bytes] = {}  # by name, folder included
        self.status: RunStatus | None = None  # None: running

    def log_window(self, metrics: Mapping[str, float], step: int, at_s: float) -> None:
        self.windows.append((step, at_s, dict(metrics)))

    def log_final(self, metrics: Mapping[str, float]) -> None:
        self.final |= metrics

    def log_artifact(self, path: Path, folder: str = "") -> None:
        self.artifacts[f"{folder}/{path.name}" if folder else path.name] = path.read_bytes()

    def log_text(self, text: str, name: str) -> None:
        self.artifacts[name] = text.encode()

    def set_tags(self, tags: Mapping[str, str]) -> None:
        self.tags |= tags

    def register(self, record: ReleaseRecord) -> None:
        self.registered.append(record)
        self.tags["release.fingerprint"] = record.fingerprint

    def flush(self) -> None:
        pass

    def resume(self, params: Mapping[str, object], tags: Mapping[str, str]) -> None:
        """Running again. Params are immutable: what differs becomes a tag `resumed.<name>`."""
        told = flatten(params)
        differing = {name: told[name] for name in told if self.params.get(name) != told[name]}
        self.tags |= {
            f"resumed.{name}": value for name, value in differing.items() if name in self.params
        }
        self.params = told | self.params
        self.tags |= tags
        self.status = None

    def close(self, status: RunStatus) -> None:
        self.status = self.status or status


class MemoryTracker:
    """Keeps its runs in `runs`, oldest first."""

    open_command = ""

    def __init__(self) -> None:
        self.runs: list[MemoryRun] = []

    def start_run(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
        parent: Run | None = None,
    ) -> MemoryRun:
        run_id, parent_id = f"run-{len(self.runs)}", parent.run_id if parent else ""
        self.runs.append(MemoryRun(run_id, name, kind, params, tags, parent_id))
        return self.runs[-1]

    def resume_run(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> MemoryRun:
        known = next((run for run in self.runs if run.run_id == run_id), None)
        if known is None:
            return self.start_run(name, kind, params, tags)
        known.resume(params, tags)
        return known

    def close(self) -> None:
        pass
