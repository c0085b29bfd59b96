"""Runs one bulk job as its own process: `python drive.py spec.json`. Exit status as the jobs'."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from scripted_engine import ScriptedEngine

from outrider.bulk.pipeline import run_job
from outrider.bulk.screen import show_report
from outrider.config.interruption import Terminated
from outrider.config.schema import (
    Baseline,
    BulkJob,
    BulkSettings,
    DraftSettings,
    EngineSettings,
    ModelSettings,
    SamplingSettings,
    TrackingSettings,
)
from outrider.core import Fault, UserError
from outrider.tracking.release import Release
from outrider.tracking.tracker import NO_TAGS, NoRun, RunStatus


class FileRun(NoRun):
    """A run that appends what it hears to a file."""

    run_id = "run-1"

    def __init__(self, path: Path) -> None:
        self._path = path

    def _note(self, name: str, value: object) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({name: value}) + "\n")

    def log_window(self, metrics: Mapping[str, float], *, step: int, at_s: float) -> None:
        self._note("window", dict(metrics))

    def log_final(self, metrics: Mapping[str, float]) -> None:
        self._note("final", dict(metrics))

    def close(self, status: RunStatus) -> None:
        self._note("closed", str(status))


class FileTracker:
    """Starts FileRuns."""

    open_command = "look at the file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def start_run(
        self, *, name: str, kind: str, params: Mapping[str, object], tags: Any = NO_TAGS
    ) -> FileRun:
        return FileRun(self._path)

    def close(self) -> None: ...


def make_job(spec: Mapping[str, Any]) -> BulkJob:
    bulk = dict(spec["bulk"])
    bulk["baseline"] = Baseline(bulk.get("baseline", "none"))
    return BulkJob(
        model=ModelSettings(source="path:/scripted"),
        engine=EngineSettings(),
        draft=DraftSettings(),
        sampling=SamplingSettings(**spec.get("sampling", {})),
        tracking=TrackingSettings(window_s=0.2),
        bulk=BulkSettings(**{"shard_rows": 4, "cpus_per_worker": 1, **bulk}),
    )


def main(spec: Mapping[str, Any]) -> int:
    job = make_job(spec)
    settings = {"model": "scripted", "sampling": spec.get("sampling", {})}
    release = Release(
        fingerprint=spec.get("fingerprint", "f1"), settings=settings, model="scripted"
    )
    console = Console(stderr=True)
    try:
        report = run_job(
            job,
            make_engine=ScriptedEngine(**spec.get("engine", {})),
            release=release,
            tracker=FileTracker(Path(spec["track"])),
            console=console,
            beacons_dir=Path(spec["beacons"]) if "beacons" in spec else None,
        )
    except (UserError, Fault) as error:
        console.print(str(error), soft_wrap=True)
        return error.exit_status
    except Terminated as error:
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    show_report(report, console)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
