"""A search by successive halving."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.config.schema.draft import DraftSettings
from outrider.config.schema.engine import EngineSettings, SamplingSettings
from outrider.config.schema.model import ModelSettings
from outrider.config.schema.tracking import TrackingSettings
from outrider.config.schema.trial import CriteriaSettings, TrialSettings


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """A search by successive halving (`outrider.trial.halving`)."""

    folder: str  # of the search: made if missing, gone on with if it is there
    axes: tuple[str, ...]  # each "key=a,b,c" or "group=a,b": every combination is a candidate
    keep_ratio: float = 0.5  # share of the candidates that go on from a rung to the next
    first_prompts: int = 6  # prompts of the first rung; each rung has 1 / keep_ratio as many more
    in_flight: int = 1  # requests at a time


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """Root of `conf/sweep.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    trial: TrialSettings
    criteria: CriteriaSettings
    sweep: SweepSettings
