"""One offline job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.config.schema.draft import DraftSettings
from outrider.config.schema.engine import EngineSettings, SamplingSettings
from outrider.config.schema.model import ModelSettings
from outrider.config.schema.tracking import Accepted, TrackingSettings


class Baseline(Enum):
    """Which rows of a bulk job are also decoded plainly, to tell what speculation gained."""

    NONE = "none"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class BulkSettings:
    """One offline job. `input` and `job_dir` are the user's."""

    input: str  # OpenAI batch JSONL, or JSONL/Parquet with a prompt or messages column
    job_dir: str  # folder of the job; made if missing, resumed if it is there
    shard_rows: int = 16  # rows a worker takes at a time and writes as one part
    num_workers: int = 1  # engine actors
    cpus_per_worker: int = 0  # Ray CPUs and threads of one worker; 0: every core / num_workers
    limit: int = 0  # rows read from the input; 0: all
    baseline: Baseline = Baseline.NONE
    new_attempt: bool = False  # go on in a folder that another configuration or input began
    parquet: bool = True  # write output.parquet beside output.jsonl
    near_tie: float = 0.5  # logits; a greedy difference at a smaller top-2 margin is a near tie
    beacons_dir: str = ""  # where it says that it is there; empty: <repository>/runs/jobs


@dataclass(frozen=True, kw_only=True)
class BulkJob:
    """Root of `conf/bulk.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    bulk: BulkSettings
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock
