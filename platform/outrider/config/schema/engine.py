"""The decoding loop, and what a request gets where it is silent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.core import Rule


class RuleKind(Enum):
    """Mirror of `core.Rule` (OmegaConf composes Enums by name)."""

    RATIO = "ratio"
    COUPLED = "coupled"

    @property
    def rule(self) -> Rule:
        return Rule(self.value)


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The decoding loop."""

    rule: RuleKind = RuleKind.COUPLED
    max_rows: int = 16  # rows decoded together
    max_round_tokens: int = 512  # tokens scored in one round, prefill and drafts together
    prefix_caching: bool = True  # share KV blocks of equal prompt beginnings
    seed: int = 0  # base of the per-request seeds
    trace: bool = False  # write RoundRecords to Parquet


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """What a request gets where it does not say otherwise."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # tokens kept; 0: off
    min_p: float = 0.0
    max_tokens: int = 128  # tokens
    min_tokens: int = 0  # tokens
