"""Typed, frozen settings. Plain dataclasses: neither Hydra nor OmegaConf is met here.

Every field here has a key of the same name in `conf/`, with a comment that gives its unit.
"""

from outrider.config.schema.bench import BenchJob, BenchSettings, BenchTarget
from outrider.config.schema.bulk import Baseline, BulkJob, BulkSettings
from outrider.config.schema.compare import CompareAction, CompareJob, CompareSettings
from outrider.config.schema.console import ConsoleSettings
from outrider.config.schema.distill import (
    DistillAction,
    DistillJob,
    DistillSettings,
    HeadInit,
)
from outrider.config.schema.draft import (
    BreakerSettings,
    DrafterKind,
    DraftLengthSettings,
    DraftSettings,
    HeadSettings,
    LengthPolicy,
    NgramSettings,
)
from outrider.config.schema.engine import EngineSettings, RuleKind, SamplingSettings
from outrider.config.schema.model import Dtype, ModelSettings, RuntimeKind
from outrider.config.schema.rollout import (
    GateSettings,
    OnStall,
    PlanSettings,
    RolloutAction,
    RolloutJob,
    RolloutSettings,
    WebhookSettings,
)
from outrider.config.schema.serving import ServeAction, ServeJob, ServingSettings
from outrider.config.schema.sweep import SweepJob, SweepSettings
from outrider.config.schema.tracking import Accepted, TrackingSettings
from outrider.config.schema.trial import CriteriaSettings, Part, TrialSettings

__all__ = [
    "Accepted",
    "Baseline",
    "BenchJob",
    "BenchSettings",
    "BenchTarget",
    "BreakerSettings",
    "BulkJob",
    "BulkSettings",
    "CompareAction",
    "CompareJob",
    "CompareSettings",
    "ConsoleSettings",
    "CriteriaSettings",
    "DistillAction",
    "DistillJob",
    "DistillSettings",
    "DraftLengthSettings",
    "DraftSettings",
    "DrafterKind",
    "Dtype",
    "EngineSettings",
    "GateSettings",
    "HeadInit",
    "HeadSettings",
    "LengthPolicy",
    "ModelSettings",
    "NgramSettings",
    "OnStall",
    "Part",
    "PlanSettings",
    "RolloutAction",
    "RolloutJob",
    "RolloutSettings",
    "RuleKind",
    "RuntimeKind",
    "SamplingSettings",
    "ServeAction",
    "ServeJob",
    "ServingSettings",
    "SweepJob",
    "SweepSettings",
    "TrackingSettings",
    "TrialSettings",
    "WebhookSettings",
]
