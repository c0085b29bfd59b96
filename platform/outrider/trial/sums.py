"""Figures of one contender alone, by the catalogue's names. Pure. What has no meaning is left out.

Tokens are useful ones: those of full answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.core import Counters
from outrider.engine.parity import Verdict
from outrider.telemetry import meters
from outrider.telemetry.meter import Meter
from outrider.trial.observation import Observation, Turn

HOUR_S = 3600.0
MILLION = 1e6
COUNTED = ("drafted", "evaluated", "accepted", "emitted", "num_rounds", "num_draft_rounds")
UNSEEN = frozenset(  # of a request's counters: observations don't hold them
    meter.name for field, meter in meters.METER_OF.items() if field not in (*COUNTED, "active_s")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """By what figures are told."""

    confidence: float = 0.95  # of intervals
    price_per_hour: float = 0.0  # of the machine; 0: no cost is told
    cores: int = 1  # given to a contender


def of_requests(seen: Sequence[Observation]) -> dict[str, float]:
    """Speed by the requests' own share of seconds, latencies, what was drafted, failures."""
    full = [one for one in seen if not one.error]
    counters = _counters(full)
    found = {
        name: value for name, value in meters.figures_of(counters).items() if name not in UNSEEN
    }
    if counters.active_s:
        found[meters.TOKENS_PER_S.name] = counters.emitted / counters.active_s
    return found | dict(_latencies(full)) | _outcomes(seen) | _parity(seen)


def of_turns(turns: Sequence[Turn], terms: Terms) -> dict[str, float]:
    """Speed by the clock, and what it cost the machine."""
    seconds, emitted = sum(turn.seconds for turn in turns), sum(turn.emitted for turn in turns)
    found = {
        meters.DURATION_S.name: seconds,
        meters.PEAK_MEMORY_BYTES.name: float(max(turn.peak_memory_bytes for turn in turns)),
    }
    if seconds:
        busy = sum(turn.cpu_s for turn in turns) / seconds
        found |= {
            meters.TOKENS_PER_S.name: emitted / seconds,
            meters.CPU_RATIO.name: busy / terms.cores,
        }
    if emitted and terms.price_per_hour:
        price = terms.price_per_hour * seconds / HOUR_S
        found[meters.COST_PER_MILLION_TOKENS.name] = price / emitted * MILLION
    return found | dict(_gpu(turns)) | dict(_energy(turns, emitted))


def _counters(full: Sequence[Observation]) -> Counters:
    totals = {name: sum(getattr(one, name) for one in full) for name in COUNTED}
    return Counters(active_s=sum(one.active_s for one in full), **totals)


def _latencies(full: Sequence[Observation]) -> Iterator[tuple[str, float]]:
    told: Mapping[Meter, list[float | None]] = {
        meters.FIRST_TOKEN_S: [one.first_token_s for one in full],
        meters.INTER_TOKEN_S: [one.inter_token_s for one in full],
        meters.TOTAL_S: [one.total_s for one in full],
    }
    for meter, values in told.items():
        known = [value for value in values if value is not None]
        if known:
            for percent in meters.PERCENTS:
                yield meter.at(percent), float(np.percentile(known, percent))


def _outcomes(seen: Sequence[Observation]) -> dict[str, float]:
    """Failures by kind: `num_failed/failure:lost`."""
    kinds = Counter(one.error for one in seen if one.error)
    num_failed = kinds.total()
    found = {
        meters.NUM_REQUESTS.name: float(len(seen)),
        meters.NUM_FAILED.name: float(num_failed),
        meters.FAILURE_RATIO.name: num_failed / len(seen) if seen else 0.0,
    }
    by_kind = {meters.NUM_FAILED.of(f"failure:{kind}"): float(n) for kind, n in kinds.items()}
    return found | by_kind


def _parity(seen: Sequence[Observation]) -> dict[str, float]:
    verdicts = Counter(one.parity for one in seen)
    num_compared = verdicts.total() - verdicts[Verdict.NOT_COMPARED.value]
    if not num_compared:
        return {}
    return {
        meters.NUM_COMPARED.name: float(num_compared),
        meters.NUM_NEAR_TIES.name: float(verdicts[Verdict.NEAR_TIE.value]),
        meters.NUM_MISMATCHES.name: float(verdicts[Verdict.MISMATCH.value]),
    }


def _gpu(turns: Sequence[Turn]) -> Iterator[tuple[str, float]]:
    told = [(turn.gpu_ratio, turn.seconds) for turn in turns if turn.gpu_ratio is not None]
    seconds = sum(length for _, length in told)
    if seconds:
        yield meters.GPU_RATIO.name, sum(ratio * length for ratio, length in told) / seconds


def _energy(turns: Sequence[Turn], emitted: int) -> Iterator[tuple[str, float]]:
    """Only where every turn told it: a part of the energy would flatter."""
    told = [turn.energy_j for turn in turns if turn.energy_j is not None]
    if len(told) == len(turns):
        yield meters.ENERGY_J.name, sum(told)
        if emitted:
            yield meters.JOULES_PER_TOKEN.name, sum(told) / emitted
