"""The tables of a trial's releases: figures, latencies, and what differs in settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from outrider.compare.diff import ABSENT
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.value import NOTHING, shown, shown_together
from outrider.telemetry import meters
from outrider.telemetry.meter import Meter
from outrider.trial.record import Figures, TrialRecord

FIGURES = {  # figure: its heading
    "tokens_per_s": "tok/s",
    "acceptance_ratio": "accepted",
    "tokens_per_round": "per round",
    "peak_memory_bytes": "peak memory",
    "cpu_ratio": "cores busy",
    "gpu_ratio": "GPU busy",
    "joules_per_token": "J per token",
    "cost_per_million_tokens": "per million tokens",
    "num_requests": "requests",
    "num_failed": "failed",
    "num_near_ties": "near ties",
    "num_mismatches": "mismatches",
}
LATENCIES = {
    meters.FIRST_TOKEN_S: "first token",
    meters.INTER_TOKEN_S: "from token to token",
    meters.TOTAL_S: "whole answer",
}
POINTS = "p50/p95/p99"


def figure_table(record: TrialRecord, looks: Mapping[str, Look]) -> Table:
    """One row for each number in flight and release; columns that nobody has are left out."""
    rows = _rows(record, looks)
    columns = [name for name in FIGURES if any(name in one.metrics for one in rows)]
    return Table(
        headings=("in flight", "release", "speed-up", *(FIGURES[name] for name in columns)),
        rows=[
            (
                *_head(one, looks),
                _speedup(one),
                *(shown(name, one.metrics.get(name)) for name in columns),
            )
            for one in rows
        ],
        num_names=2,
    )


def latency_table(record: TrialRecord, looks: Mapping[str, Look]) -> Table:
    """The same rows, with percentiles."""
    return Table(
        headings=("in flight", "release", *(f"{title} {POINTS}" for title in LATENCIES.values())),
        rows=[
            (*_head(one, looks), *(_percentiles(one, meter) for meter in LATENCIES))
            for one in _rows(record, looks)
        ],
        num_names=2,
    )


def _rows(record: TrialRecord, looks: Mapping[str, Look]) -> list[Figures]:
    order = list(looks)
    rows = [one for one in record.figures if not one.group]
    return sorted(rows, key=lambda one: (one.in_flight, order.index(one.contender)))


def _head(one: Figures, looks: Mapping[str, Look]) -> tuple[str, str]:
    return str(one.in_flight), f"{looks[one.contender].letter} {one.contender}"


def _percentiles(one: Figures, meter: Meter) -> str:
    return shown_together([one.metrics.get(meter.at(percent)) for percent in meters.PERCENTS])


def _speedup(figures: Figures) -> str:
    ratio = figures.ratios.get(meters.SPEEDUP_RATIO.name)
    if ratio is None:
        return NOTHING
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def settings_table(settings: Mapping[str, Mapping[str, str]]) -> Table:
    """By contender: dotted key -> value. Only keys that are not the same in all of them."""
    keys = sorted({key for values in settings.values() for key in values})
    rows = []
    for key in keys:
        values = [values.get(key, ABSENT) for values in settings.values()]
        if len(set(values)) > 1:
            rows.append((key, *values))
    return Table(headings=("setting", *settings), rows=rows, num_names=len(settings) + 1)
