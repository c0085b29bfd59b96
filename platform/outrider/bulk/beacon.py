"""A bulk job's light for others: one small file that says what it is and how far, for `glance`.

It holds a path, numbers and ids: nothing of what is decoded.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from outrider.bulk.glance import BEACON_VERSION, JobGlance, JobState
from outrider.bulk.live import BEAT_S, Tally
from outrider.bulk.manifest import Manifest, Session
from outrider.bulk.progress import Glance
from outrider.core import Clock
from outrider.tracking.lifecycle import status_of
from outrider.tracking.process import Process
from outrider.tracking.tracker import RunStatus

ENDS = {
    RunStatus.FINISHED: JobState.FINISHED,
    RunStatus.FAILED: JobState.FAILED,
    RunStatus.KILLED: JobState.STOPPED,
}


class Beacon:
    """Of one run of a job, lit while its driver is inside. A disk that refuses costs it, no more.

    The file is named by the job's folder: the next run there takes its place.
    """

    def __init__(self, beacons_dir: Path | None, job: JobGlance, clock: Clock) -> None:
        """`beacons_dir`: None where nobody looks."""
        self._path = None if beacons_dir is None else beacons_dir / _name(job.job_dir)
        self._job = job
        self._clock = clock
        self._process = Process.current().to_tags()
        self._next_s = 0.0  # of the clock's monotonic time

    def progress(self, seen: Glance, tally: Tally, num_failed: int) -> None:
        """Written about once a second. `num_failed` rows are in recorded parts."""
        self._job = replace(
            self._job,
            num_rows_done=max(0, seen.num_rows - num_failed),
            num_rows_failed=num_failed,
            tokens_per_s=seen.tokens_per_s,
            eta_s=seen.eta_s,
            num_emitted_tokens=tally.emitted,
            num_evaluated_tokens=tally.evaluated,
            num_accepted_tokens=tally.accepted,
        )
        if self._clock.monotonic() >= self._next_s:
            self._write()

    def count(self, num_done: int, num_failed: int) -> None:
        """The rows as they are in the outputs."""
        self._job = replace(self._job, num_rows_done=num_done, num_rows_failed=num_failed)

    def __enter__(self) -> Self:
        if self._path is not None:
            _sweep(self._path.parent)
        self._write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = RunStatus.FINISHED if error is None else status_of(error)
        self._job = replace(self._job.at_rest, state=ENDS[status])
        self._write()

    def _write(self) -> None:
        self._next_s = self._clock.monotonic() + BEAT_S
        self._job = replace(self._job, at_s=self._clock.time())
        if self._path is None:
            return
        told = {"version": BEACON_VERSION, "process": self._process, "job": asdict(self._job)}
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self._path.with_suffix(".tmp")
            unfinished.write_text(json.dumps(told))
            unfinished.replace(self._path)


def job_of(job_dir: Path, manifest: Manifest, session: Session) -> JobGlance:
    """As a run finds it."""
    return JobGlance(
        name=job_dir.name,
        job_dir=str(job_dir),
        state=JobState.RUNNING,
        num_rows=manifest.identity.num_rows,
        num_rows_done=manifest.num_done,
        num_rows_failed=manifest.num_failed,
        began_s=session.began,
        at_s=session.began,
        fingerprint=session.fingerprint,
        run_id=session.run_id,
    )


def _sweep(beacons_dir: Path) -> None:
    """Beacons of folders that are gone: nobody shows them any more."""
    for path in beacons_dir.glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            if not Path(json.loads(path.read_bytes())["job"]["job_dir"]).exists():
                path.unlink()


def _name(job_dir: str) -> str:
    return f"{hashlib.sha256(os.fsencode(job_dir)).hexdigest()[:16]}.json"
