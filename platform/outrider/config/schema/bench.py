"""The figures that engine and serving are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.config.schema.draft import DraftSettings
from outrider.config.schema.engine import EngineSettings, SamplingSettings
from outrider.config.schema.model import ModelSettings
from outrider.config.schema.tracking import Accepted, TrackingSettings
from outrider.config.schema.trial import CriteriaSettings, TrialSettings


class BenchTarget(Enum):
    """What is measured."""

    ENGINE = "engine"
    HTTP = "http"  # live serving


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """The figures that engine and serving are judged by (`outrider.bench`)."""

    workload: str  # JSONL of prompts, each with its kind
    warmup: str  # the same for other prompts, decoded before anything is timed
    target: BenchTarget = BenchTarget.ENGINE
    out: str = ""  # where the figures are written; empty: runs/figures.json, runs/figures-http.json
    num_repeats: int = 1  # times that every prompt is decoded by every arm
    max_tokens: int = 128  # tokens per request
    num_threads: int = 2  # threads of one forward
    only: tuple[str, ...] = ()  # names of the experiments to run; empty: all
    url: str = ""  # target http: a server that is there; empty: one is started for each experiment
    num_streams: int = 200  # target http: streams that are cancelled
    minutes: float = 10.0  # target http: how long replicas are killed, one a minute
    timeout_s: float = 180.0  # target http: a request that takes longer has hung


@dataclass(frozen=True, kw_only=True)
class BenchJob:
    """Root of `conf/bench.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    bench: BenchSettings
    trial: TrialSettings
    criteria: CriteriaSettings
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock
