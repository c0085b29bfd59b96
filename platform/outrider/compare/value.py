"""A figure's value as people read it, and in which direction it is better. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from outrider.telemetry.meters import WINDOW, meter_of

LOW, HIGH = "_low", "_high"  # behind a figure's name: the ends of its interval
NOTHING = "-"
LARGE_S = 100  # seconds from which decimals say nothing
SMALL_S = 0.01  # seconds up to which a whole millisecond says too little
AGAINST_PLAIN = ("first_token_ratio", "inter_token_ratio", "total_ratio", "memory_ratio")
TIMES = frozenset({"speedup_ratio", *AGAINST_PLAIN})  # shown as 1.52 x; other ratios as 72%
LOWER_IS_BETTER = frozenset(
    {
        *AGAINST_PLAIN,
        "num_rows_failed",
        "failure_ratio",
        "num_failed",
        "num_mismatches",
        "num_near_ties",
        "num_preemptions",
        "num_drafter_failures",
        "peak_memory_bytes",
        "energy_j",
        "joules_per_token",
        "cost_per_million_tokens",
    }
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A value with its interval, where it has one."""

    value: float
    low: float | None = None
    high: float | None = None

    def overlaps(self, other: Measure) -> bool | None:
        """None where one of them has no interval."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return None
        return self.low <= other.high and other.low <= self.high


def base_name(name: str) -> str:
    """The catalogue's name of a figure: without window, group and the end of an interval."""
    base = name.removeprefix(WINDOW).partition("/")[0]
    return base.removesuffix(LOW).removesuffix(HIGH)


def is_lower_better(name: str) -> bool:
    """Latencies, failures, memory, energy and cost."""
    meter = meter_of(name)
    return base_name(name) in LOWER_IS_BETTER or (meter is not None and meter.unit == "seconds")


def end_of_interval(name: str, end: str) -> str:
    """`speedup_ratio/chat`, LOW -> `speedup_ratio_low/chat`."""
    base, slash, group = name.partition("/")
    return f"{base}{end}{slash}{group}"


def is_end_of_interval(name: str) -> bool:
    base = name.partition("/")[0]
    return base.endswith((LOW, HIGH))


def shown(name: str, value: float | None) -> str:
    """`value` of the figure `name`, with its unit."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if base_name(name) in TIMES:
        return f"{value:.2f} x"
    meter = meter_of(name)
    match meter.unit if meter else "":
        case "seconds":
            return shown_seconds(value)
        case "1":
            return f"{100 * value:.0f}%"
        case "bytes":
            return f"{value / 1e9:.2f} GB"
        case "tokens/second":
            return f"{value:.1f}"
        case "tokens" if not base_name(name).startswith("num_"):
            return f"{value:.2f}"
        case "currency":
            return f"{value:.2f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def shown_seconds(value: float) -> str:
    if value >= LARGE_S:
        return f"{value:.0f} s"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{1000 * value:.1f} ms" if value < SMALL_S else f"{1000 * value:.0f} ms"


def shown_together(seconds: Sequence[float | None]) -> str:
    """`80 / 120 / 140 ms`: in the unit that fits the longest."""
    known = [value for value in seconds if value is not None]
    if not known:
        return NOTHING
    in_seconds = max(known) >= 1
    digits = 2 if in_seconds else int(max(known) < SMALL_S)
    texts = [
        NOTHING if value is None else f"{value if in_seconds else 1000 * value:.{digits}f}"
        for value in seconds
    ]
    return f"{' / '.join(texts)} {'s' if in_seconds else 'ms'}"


def shown_interval(name: str, low: float | None, high: float | None) -> str:
    """`1.41 to 1.63`; empty where there is none."""
    if low is None or high is None:
        return ""
    first = shown(name, low)
    unit = shown(name, high).rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}')} to {shown(name, high)}"


def number(text: str) -> float | None:
    """`text` as a number; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
