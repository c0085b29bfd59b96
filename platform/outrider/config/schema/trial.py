"""Releases measured against plain decoding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(Enum):
    """Which prompts of an evaluation set are decoded."""

    TUNING = "tuning"  # as often as one likes
    CONFIRMATION = "confirmation"  # once per release: what a decision rests on


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """Releases measured against plain decoding, in turn, on the same prompts (`outrider.trial`)."""

    evaluation: str  # JSONL of prompts: id, kind, messages; also language, temperature, seed
    warmup: str  # the same for other prompts, decoded before anything is timed
    releases: tuple[str, ...] = ()  # models:/outrider@..., or overrides such as "draft=fixed max=4"
    part: Part = Part.TUNING
    confirmation_share: float = 0.5  # of each kind's prompts, chosen by a hash of their ids
    in_flight: tuple[int, ...] = (1, 8)  # requests at a time
    num_passes: int = 1  # times that every prompt is decoded; more where 8 turns need it
    answer_tokens: int = 128  # most tokens of an answer
    cores: int = 0  # threads of one engine; 0: every core the process may use
    timeout_s: float = 300.0  # seconds after which a request is cancelled and has failed
    near_tie: float = 0.5  # logits; a greedy difference at a smaller top-2 margin is a near tie
    price_per_hour: float = 0.0  # of this machine; 0: no cost is told
    currency: str = "USD"


@dataclass(frozen=True, kw_only=True)
class CriteriaSettings:
    """What a release must reach against plain decoding (`outrider.trial.criteria`).

    Written down and hashed before the first request. Ratios are release / plain.
    """

    min_speedup: float = 1.0  # tokens per second, at every number in flight
    min_group_speedup: float = 0.9  # the same for every kind, language, temperature, prompt length
    max_first_token_ratio: float = 1.25  # p95 of the time to first token
    max_inter_token_ratio: float = 1.1  # p95 of the time from token to token
    max_total_ratio: float = 1.1  # p95 of the time to the whole answer
    max_memory_ratio: float = 1.5  # peak memory of the process
    max_failure_ratio: float = 0.0  # share of requests that failed
    max_mismatches: int = 0  # outputs that differ from plain decoding's, near ties apart
    confidence: float = 0.95  # of the intervals, by paired bootstrap
    min_pairs: int = 8  # pairs of requests; a group with fewer is not judged
