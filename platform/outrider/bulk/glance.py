"""A bulk job as it is shown beside others: what it is, how far it is, and whether it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
