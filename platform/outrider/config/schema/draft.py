"""Who drafts, how long, and when it is taken back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from outrider.config.schema.model import ModelSettings


class DrafterKind(Enum):
    """Who proposes tokens."""

    NONE = "none"
    NGRAM = "ngram"
    MODEL = "model"
    HEAD = "head"
    COMPOSITE = "composite"


class LengthPolicy(Enum):
    """How the draft length is chosen."""

    ADAPTIVE = "adaptive"  # by goodput, per row and round
    FIXED = "fixed"  # always `max`


@dataclass(frozen=True, kw_only=True)
class DraftLengthSettings:
    """The length rule (`outrider.engine.draft_length`)."""

    policy: LengthPolicy = LengthPolicy.ADAPTIVE
    max: int = 15  # tokens; the longest draft of a row in a round
    discount: float = 0.995  # per observation; how fast old acceptance is forgotten
    prior_strength: float = 8.0  # observations that the deployment's prior weighs for a new row


@dataclass(frozen=True, kw_only=True)
class BreakerSettings:
    """When speculation is taken back, and how it is tried again (`outrider.engine.breaker`)."""

    enabled: bool = True
    min_gain: float = 0.02  # delta: opens when goodput(spec)/goodput(plain) is surely < 1 - delta
    alpha: float = 0.01  # false-opening probability of the anytime-valid bound
    first_wait_rounds: int = 64  # rounds open before the first probe; doubles each time
    max_wait_rounds: int = 4096
    probe_rounds: int = 8  # speculative rounds of a half-open trial
    probe_share: float = 0.25  # share of rows that may draft while half-open


@dataclass(frozen=True, kw_only=True)
class NgramSettings:
    """Prompt lookup (`outrider.engine.drafters.ngram`)."""

    max_match: int = 6  # tokens; longest suffix looked up
    min_match: int = 1  # tokens; shortest suffix looked up
    corpus: bool = True  # also learn finished outputs, of every request of the engine
    corpus_tokens: int = 1_000_000  # most tokens the shared corpus keeps


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """A draft head of the target (`outrider.engine.head`)."""

    source: str = ""  # auto | path:/folder | mlflow:models:/x@y | shipped:name; "": none


@dataclass(frozen=True, kw_only=True)
class DraftSettings:
    """Who drafts, how long, and when it is taken back."""

    drafter: DrafterKind = DrafterKind.NGRAM
    ngram: NgramSettings = field(default_factory=NgramSettings)
    model: ModelSettings | None = None  # for drafter model, and composite without a head
    head: HeadSettings = field(default_factory=HeadSettings)  # for drafter head and composite
    length: DraftLengthSettings = field(default_factory=DraftLengthSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
