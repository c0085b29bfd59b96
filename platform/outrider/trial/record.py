"""`trial.json`: what a trial found, for whoever shows it later. Plain data, no engine needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from outrider.core import Fault
from outrider.trial.judgement import Decision, Finding, Judgement, Verdict

FILE = "trial.json"
CRITERIA_FILE = "criteria.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A release against plain decoding, with its interval by paired bootstrap."""

    value: float
    low: float
    high: float
    num_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured of one contender at one number in flight, for one group of requests.

    `metrics` go by the names of `telemetry.meters`. `ratios` are against the baseline: speedup,
    first_token, inter_token and total (of the p95 seconds), memory; a baseline has none.
    """

    contender: str
    in_flight: int
    group: str = ""  # empty: all; chat, language:de, temperature:0.8, prompt:short
    metrics: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, Ratio] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A contender as it is recorded, without its engine."""

    name: str
    fingerprint: str
    baseline: str = ""  # name of the plain contender; empty: it is one
    version: int | None = None  # of the registered release
    judgement: Judgement | None = None  # None: a baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A whole trial."""

    part: str
    evaluation: str  # name of the file
    evaluation_sha256: str
    num_cases: int
    criteria: Mapping[str, Any]
    criteria_sha256: str
    conditions: Mapping[str, Any]  # model, dtype, hardware, packages, cores, ...
    entrants: tuple[Entrant, ...]
    figures: tuple[Figures, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, default=str)

    @classmethod
    def from_json(cls, text: str) -> TrialRecord:
        """Raises Fault for a record of another version, or one cut short."""
        try:
            data = json.loads(text)
            data["entrants"] = tuple(_entrant(entry) for entry in data["entrants"])
            data["figures"] = tuple(_figures(entry) for entry in data["figures"])
            return cls(**data)
        except (ValueError, TypeError, KeyError) as error:
            raise Fault(f"{FILE} is not a trial's record: {error}") from error


def _entrant(data: dict[str, Any]) -> Entrant:
    found = data["judgement"]
    return Entrant(**{**data, "judgement": None if found is None else _judgement(found)})


def _judgement(data: dict[str, Any]) -> Judgement:
    findings = tuple(
        Finding(**{**finding, "verdict": Verdict(finding["verdict"])})
        for finding in data["findings"]
    )
    return Judgement(decision=Decision(data["decision"]), findings=findings, reason=data["reason"])


def _figures(data: dict[str, Any]) -> Figures:
    ratios = {name: Ratio(**ratio) for name, ratio in data["ratios"].items()}
    return Figures(**{**data, "ratios": ratios})
