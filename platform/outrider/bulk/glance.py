"""A bulk job as it is shown beside others: what it is, how far it is, and whether it runs.

Jobs are found by their beacons (`beacon`), each a small file: looking reads nothing else of a
job, and changes nothing.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, get_type_hints

from outrider.tracking.process import Process

BEACON_VERSION = 1
MOST_SHOWN = 20
MOST_READ = 200  # the newest: looking costs about the same however many there are
UNREADABLE = (  # what a file that no driver of ours wrote may lead to
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class JobState(StrEnum):
    """What became of a job so far."""

    RUNNING = "running"
    STOPPED = "stopped"  # its process is gone; the same command goes on from there
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGlance:
    """`num_rows_done` and `num_rows_failed` of `num_rows` have ended, earlier runs included."""

    name: str  # of the folder
    job_dir: str
    state: JobState
    num_rows: int
    num_rows_done: int
    num_rows_failed: int
    began_s: float  # of the last run, seconds since 1970
    at_s: float  # when this was true
    tokens_per_s: float = 0.0  # over the last seconds
    eta_s: float | None = None  # None: not known yet
    num_emitted_tokens: int = 0  # of this run
    num_evaluated_tokens: int = 0
    num_accepted_tokens: int = 0
    fingerprint: str = ""  # of the release that decodes
    run_id: str = ""  # MLflow's

    @property
    def at_rest(self) -> JobGlance:
        """Nothing of it goes on."""
        return replace(self, tokens_per_s=0.0, eta_s=None)


KINDS = {  # of each field's value; a whole number is a number too
    name: kind | int if kind in (float, float | None) else kind
    for name, kind in get_type_hints(JobGlance).items()
}


def all_jobs(
    beacons_dir: Path, *, most: int = MOST_SHOWN, here: Process | None = None
) -> tuple[JobGlance, ...]:
    """Newest first; where there are too many, those that run before others.

    `here`: the process that looks. A folder that is gone is no job.
    """
    here = here or Process.current()
    found = (look_at(path, here) for path in _newest(beacons_dir))
    jobs = sorted((job for job in found if job), key=_rank, reverse=True)[:most]
    return tuple(sorted(jobs, key=lambda job: job.began_s, reverse=True))


def look_at(beacon: Path, here: Process) -> JobGlance | None:
    """The job of one beacon; None where it can't be read, or its folder is gone."""
    try:
        return _read(json.loads(beacon.read_bytes()), here)
    except UNREADABLE:
        return None


def _read(told: Any, here: Process) -> JobGlance | None:
    if told["version"] != BEACON_VERSION or not Path(told["job"]["job_dir"]).is_dir():
        return None
    job = _job(told["job"])
    process = Process.from_tags(told["process"])
    is_left = job.state is JobState.RUNNING and process is not None and process.is_gone(here)
    return _shown(replace(job.at_rest, state=JobState.STOPPED) if is_left else job)


def _job(told: Mapping[str, Any]) -> JobGlance:
    """Each figure is of its kind: one that is none would take all others off /metrics."""
    job = JobGlance(**{**told, "state": JobState(told["state"])})
    for name, kind in KINDS.items():
        if not isinstance(getattr(job, name), kind):
            raise TypeError(name)
    return job


def _newest(beacons_dir: Path) -> list[Path]:
    return [Path(path) for _, path in heapq.nlargest(MOST_READ, _dated(beacons_dir))]


def _dated(beacons_dir: Path) -> Iterator[tuple[float, str]]:
    with suppress(OSError), os.scandir(beacons_dir) as entries:  # cheap, of thousands as well
        for entry in entries:
            with suppress(OSError):  # taken away just now
                if entry.name.endswith(".json"):
                    yield entry.stat().st_mtime, entry.path


def _rank(job: JobGlance) -> tuple[bool, float]:
    return job.state is JobState.RUNNING, job.began_s


def _shown(job: JobGlance) -> JobGlance:
    """A folder's name may be no text: bytes of another encoding can't be sent on."""
    name, job_dir = (text.encode(errors="replace").decode() for text in (job.name, job.job_dir))
    return replace(job, name=name, job_dir=job_dir)
