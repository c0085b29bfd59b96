"""A bulk job as it is shown beside others: what it is, how far it is, and whether it runs.

Jobs are found by their beacons (`beacon`), each a small file: looking reads nothing else of a
job, and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from outrider.tracking.process import Process

BEACON_VERSION = 1
MOST_SHOWN = 20
MOST_READ = 200  # the newest: looking costs the same however many there are


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
    def acceptance_ratio(self) -> float | None:
        tested = self.num_evaluated_tokens
        return self.num_accepted_tokens / tested if tested else None

    @property
    def at_rest(self) -> JobGlance:
        """Nothing of it goes on."""
        return replace(self, tokens_per_s=0.0, eta_s=None)


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
        told = json.loads(beacon.read_bytes())
        if told["version"] != BEACON_VERSION or not Path(told["job"]["job_dir"]).is_dir():
            return None
        job = JobGlance(**{**told["job"], "state": JobState(told["job"]["state"])})
        process = Process.from_tags(told["process"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    is_left = job.state is JobState.RUNNING and process is not None and process.is_gone(here)
    return _shown(replace(job.at_rest, state=JobState.STOPPED) if is_left else job)


def _newest(beacons_dir: Path) -> list[Path]:
    dated = sorted(_dated(beacons_dir), key=lambda each: each[0], reverse=True)
    return [path for _, path in dated[:MOST_READ]]


def _dated(beacons_dir: Path) -> Iterator[tuple[float, Path]]:
    for path in beacons_dir.glob("*.json"):
        try:
            yield path.stat().st_mtime, path
        except OSError:  # taken away just now
            continue


def _rank(job: JobGlance) -> tuple[bool, float]:
    return job.state is JobState.RUNNING, job.began_s


def _shown(job: JobGlance) -> JobGlance:
    """A folder's name may be no text: bytes of another encoding can't be sent on."""
    name, job_dir = (text.encode(errors="replace").decode() for text in (job.name, job.job_dir))
    return replace(job, name=name, job_dir=job_dir)
