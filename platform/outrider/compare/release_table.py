"""The table of a trial's releases, and the one of what differs between their settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from outrider.compare.diff import ABSENT
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.value import NOTHING, shown, shown_together
from outrider.telemetry import meters
from outrider.trial.record import Figures, TrialRecord

COLUMNS = {  # figure: its heading
    "tokens_per_s": "tok/s",
    "acceptance_ratio": "accepted",
    "tokens_per_round": "per round",
    "first_token_s": "first token",
    "inter_token_s": "from token to token",
    "total_s": "whole answer",
    "peak_memory_bytes": "peak memory",
    "cpu_ratio": "cores busy",
    "gpu_ratio": "GPU busy",
    "joules_per_token": "J per token",
    "cost_per_million_tokens": "per million tokens",
    "num_requests": "requests",
    "num_failed": "failed",
    "num_mismatches": "mismatches",
}
LATENCIES = (meters.FIRST_TOKEN_S, meters.INTER_TOKEN_S, meters.TOTAL_S)
PERCENTILES = {  # figure: its percentiles, which share a column
    meter.name: tuple(meter.at(percent) for percent in meters.PERCENTS) for meter in LATENCIES
}
HEADING = "p50 / p95 / p99"


def release_table(record: TrialRecord, looks: Mapping[str, Look]) -> Table:
    """One row for each number in flight and release; columns that nobody has are left out."""
    rows = [one for one in record.figures if not one.group]
    order = list(looks)
    rows.sort(key=lambda one: (one.in_flight, order.index(one.contender)))
    columns = [name for name in COLUMNS if any(_has(one, name) for one in rows)]
    return Table(
        headings=("in flight", "release", "speed-up", *map(_heading, columns)),
        rows=[
            (
                str(one.in_flight),
                f"{looks[one.contender].letter}  {one.contender}",
                _speedup(one),
                *(_cell(one, column) for column in columns),
            )
            for one in rows
        ],
        num_names=2,
    )


def _has(figures: Figures, column: str) -> bool:
    return any(name in figures.metrics for name in PERCENTILES.get(column, (column,)))


def _heading(column: str) -> str:
    title = COLUMNS[column]
    return f"{title} {HEADING}" if column in PERCENTILES else title


def _cell(figures: Figures, column: str) -> str:
    if column not in PERCENTILES:
        return shown(column, figures.metrics.get(column))
    return shown_together([figures.metrics.get(name) for name in PERCENTILES[column]])


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
