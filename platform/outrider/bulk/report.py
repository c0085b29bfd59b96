"""report.json: what the job did and what speculation gained, as numbers with their conditions.

Names are those of `telemetry.meters`. Ratios, and what they are made of (sums over rows; see
`core.Counters`):
  tokens_per_s      emitted / active_s, where active_s is each row's even share of the seconds of
                    the rounds that it was in: the engine's throughput, loading and waiting left out
  speedup_ratio     speculative tokens_per_s / plain tokens_per_s, over the same rows
  acceptance_ratio  accepted / evaluated: of the drafted tokens that were tested, those taken (a
                    rejection ends the testing of its round)
  mean_draft_length drafted / num_draft_rounds: only rounds that drafted
  tokens_per_round  emitted / num_rounds: plain decoding is 1
A ratio without a denominator is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outrider.bulk.durable import replacing
from outrider.bulk.figures import Arm, ArmFigures, Figures
from outrider.core import UserError
from outrider.telemetry import meters

REPORT_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReport:
    """One arm: rows decoded, tokens, seconds, and the ratios of the module's table."""

    num_rows: int
    num_prompt_tokens: int
    num_emitted_tokens: int
    active_s: float
    tokens_per_s: float | None
    num_drafted_tokens: int
    num_evaluated_tokens: int
    num_accepted_tokens: int
    num_rounds: int
    num_draft_rounds: int
    num_drafter_failures: int
    acceptance_ratio: float | None
    mean_draft_length: float | None
    tokens_per_round: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReport:
    """Rows of one kind (the user's label; "" where there is none). `plain` needs a baseline."""

    kind: str
    speculative: ArmReport
    plain: ArmReport | None
    speedup_ratio: float | None

    def metrics(self, kind: str) -> dict[str, float | None]:
        """The figures under their names for `kind`; all kinds together: ""."""
        arm = self.speculative
        found = {
            meters.TOKENS_PER_S: arm.tokens_per_s,
            meters.ACCEPTANCE_RATIO: arm.acceptance_ratio,
            meters.MEAN_DRAFT_LENGTH: arm.mean_draft_length,
            meters.TOKENS_PER_ROUND: arm.tokens_per_round,
        }
        if self.plain is not None:
            found[meters.PLAIN_TOKENS_PER_S] = self.plain.tokens_per_s
            found[meters.SPEEDUP_RATIO] = self.speedup_ratio
        return {meter.of(kind): value for meter, value in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityReport:
    """Speculative against plain output of the same rows, token by token."""

    num_compared: int
    num_mismatches: int  # near ties apart
    num_near_ties: int
    near_tie_logits: float  # a difference at a smaller top-2 margin of the target is a near tie


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """report.json, version 2. Durations in seconds, over all runs of the job where it resumed."""

    version: int = REPORT_VERSION
    status: str = "FINISHED"
    num_rows: int = 0  # of the input (up to bulk.limit); = done + failed
    num_rows_done: int = 0
    num_rows_failed: int = 0
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    total: KindReport  # all kinds together; its `kind` is "*"
    by_kind: list[KindReport] = field(default_factory=list)
    parity: ParityReport | None = None  # null without a baseline
    duration_s: float = 0.0  # wall clock, loading included
    num_sessions: int = 1  # times the job was started
    fingerprint: str = ""
    fingerprints: list[str] = field(default_factory=list)  # more than one after new_attempt
    input: Mapping[str, Any] = field(default_factory=dict)  # path, digest (sha256)
    run_id: str = ""
    open_command: str = ""  # shows the recorded run
    files: Mapping[str, str] = field(default_factory=dict)  # output, table, errors, report
    conditions: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        with replacing(path) as file:
            text = json.dumps(asdict(self), ensure_ascii=False, indent=2)
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def metrics(self) -> dict[str, float]:
        """The final figures for a tracker; unknown ones are left out."""
        found: dict[str, float | None] = {
            meters.NUM_ROWS_DONE.name: self.num_rows_done,
            meters.NUM_ROWS_FAILED.name: self.num_rows_failed,
            meters.DURATION_S.name: self.duration_s,
        }
        found |= self.total.metrics("")
        for kind in self.by_kind:
            found |= kind.metrics(kind.kind or "none")
        if self.parity is not None:
            found[meters.NUM_COMPARED.name] = self.parity.num_compared
            found[meters.NUM_MISMATCHES.name] = self.parity.num_mismatches
            found[meters.NUM_NEAR_TIES.name] = self.parity.num_near_ties
        return {name: float(value) for name, value in found.items() if value is not None}


def load_report(path: Path) -> Report:
    """Read a report.json back. `UserError` where it is of another version or damaged."""
    try:
        value = json.loads(path.read_bytes())
        value["total"] = _kind_from(value["total"])
        value["by_kind"] = [_kind_from(kind) for kind in value["by_kind"]]
        value["parity"] = value["parity"] and ParityReport(**value["parity"])
        report = Report(**value)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a report: remove it and run again") from error
    if report.version != REPORT_VERSION:
        raise UserError(f"{path} is of version {report.version}: remove it and run again")
    return report


def _kind_from(value: dict[str, Any]) -> KindReport:
    plain = value["plain"] and ArmReport(**value["plain"])
    return KindReport(
        kind=value["kind"],
        speculative=ArmReport(**value["speculative"]),
        plain=plain,
        speedup_ratio=value["speedup_ratio"],
    )


def total_report(figures: Figures) -> KindReport:
    return _kind_report("*", figures, None)


def kind_reports(figures: Figures) -> list[KindReport]:
    return [_kind_report(kind, figures, [kind]) for kind in figures.kinds]


def parity_report(figures: Figures, near_tie: float) -> ParityReport | None:
    if not any(arm is Arm.PLAIN for arm, _ in figures.arms):
        return None
    parity = figures.parity
    return ParityReport(
        num_compared=parity.compared,
        num_mismatches=parity.mismatches,
        num_near_ties=parity.near_ties,
        near_tie_logits=near_tie,
    )


def _kind_report(kind: str, figures: Figures, kinds: list[str] | None) -> KindReport:
    speculative = _arm_report(figures.total(Arm.SPECULATIVE, kinds))
    plain = _arm_report(figures.total(Arm.PLAIN, kinds))
    if not plain.num_rows:
        return KindReport(kind=kind, speculative=speculative, plain=None, speedup_ratio=None)
    gain = None
    if speculative.tokens_per_s is not None and plain.tokens_per_s is not None:
        gain = _ratio(speculative.tokens_per_s, plain.tokens_per_s)
    return KindReport(kind=kind, speculative=speculative, plain=plain, speedup_ratio=gain)


def _arm_report(figures: ArmFigures) -> ArmReport:
    counters = figures.counters
    ratios = meters.figures_of(counters)
    return ArmReport(
        num_rows=figures.num_rows,
        num_prompt_tokens=figures.num_prompt_tokens,
        num_emitted_tokens=counters.emitted,
        active_s=counters.active_s,
        tokens_per_s=_ratio(counters.emitted, counters.active_s),
        num_drafted_tokens=counters.drafted,
        num_evaluated_tokens=counters.evaluated,
        num_accepted_tokens=counters.accepted,
        num_rounds=counters.num_rounds,
        num_draft_rounds=counters.num_draft_rounds,
        num_drafter_failures=counters.num_drafter_failures,
        acceptance_ratio=ratios.get("acceptance_ratio"),
        mean_draft_length=ratios.get("mean_draft_length"),
        tokens_per_round=ratios.get("tokens_per_round"),
    )


def _ratio(over: float, under: float) -> float | None:
    return over / under if under else None
