"""From what was seen to figures, by contender, number in flight and group. Pure.

Overall speed is that of turns, which had the machine to themselves; a group's is that of its
requests, each with its even share of its rounds' seconds. Pairs are turns, or else prompts: one
that was decoded more than once is one pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.telemetry import meters
from outrider.telemetry.meter import Meter
from outrider.trial.bootstrap import Array, ratio_of_quantiles, ratio_of_rates
from outrider.trial.group import ALL, groups_of
from outrider.trial.observation import Measured, Observation, Turn
from outrider.trial.record import Figures, Ratio
from outrider.trial.sums import Terms, of_requests, of_turns

TAIL = 0.95  # the percentile that is compared

LATENCIES: Mapping[Meter, Callable[[Observation], float | None]] = {
    meters.FIRST_TOKEN_RATIO: lambda seen: seen.first_token_s,
    meters.INTER_TOKEN_RATIO: lambda seen: seen.inter_token_s,
    meters.TOTAL_RATIO: lambda seen: seen.total_s,
}

Pairs = list[tuple[Observation, Observation]]  # ours, theirs: both full answers
Rate = tuple[float, float]  # tokens, seconds


@dataclass(frozen=True, slots=True)
class Cell:
    """All of one contender at one number in flight."""

    observations: Sequence[Observation]
    turns: Sequence[Turn]

    def of(self, group: str) -> list[Observation]:
        return [seen for seen in self.observations if group == ALL or group in groups_of(seen)]

    @property
    def groups(self) -> list[str]:
        return [ALL, *sorted({group for seen in self.observations for group in groups_of(seen)})]

    @property
    def peak_memory_bytes(self) -> int:
        return max((turn.peak_memory_bytes for turn in self.turns), default=0)


def figures(measured: Measured, baselines: Mapping[str, str], terms: Terms) -> tuple[Figures, ...]:
    """`baselines`: contender -> its baseline; a baseline's own is empty."""
    cells = _cells(measured)
    return tuple(
        _figures(name, in_flight, group, cell, cells.get((baselines[name], in_flight)), terms)
        for (name, in_flight), cell in cells.items()
        for group in cell.groups
    )


def _cells(measured: Measured) -> dict[tuple[str, int], Cell]:
    keys = dict.fromkeys((turn.contender, turn.in_flight) for turn in measured.turns)
    return {
        key: Cell(
            [one for one in measured.observations if (one.contender, one.in_flight) == key],
            [one for one in measured.turns if (one.contender, one.in_flight) == key],
        )
        for key in keys
    }


def _figures(
    name: str, in_flight: int, group: str, cell: Cell, base: Cell | None, terms: Terms
) -> Figures:
    metrics = of_requests(cell.of(group))
    if group == ALL:
        metrics |= of_turns(cell.turns, terms)
    ratios = {}
    if base is not None:
        ratios = dict(_ratios(group, cell, base, terms.confidence))
        metrics |= _against(group, cell, base, ratios, terms)
    return Figures(contender=name, in_flight=in_flight, group=group, metrics=metrics, ratios=ratios)


def _ratios(group: str, cell: Cell, base: Cell, confidence: float) -> Iterator[tuple[str, Ratio]]:
    pairs = _pairs(cell.of(group), base.of(group))
    found = {meters.SPEEDUP_RATIO: _speedup(group, cell, base, pairs, confidence)}
    if group == ALL:
        for meter, latency in LATENCIES.items():
            ours, theirs = _both(pairs, latency)
            found[meter] = ratio_of_quantiles(ours, theirs, TAIL, confidence)
    for meter, ratio in found.items():
        if ratio is not None:
            yield meter.name, ratio


def _speedup(group: str, cell: Cell, base: Cell, pairs: Pairs, confidence: float) -> Ratio | None:
    rates = _turn_rates(cell, base) if group == ALL else [_rates(p) for p in _by_prompt(pairs)]
    table = np.array(rates, dtype=np.float64).reshape(-1, 2, 2)  # [pairs, side, (tokens, seconds)]
    return ratio_of_rates(table[:, 0], table[:, 1], confidence)


def _turn_rates(cell: Cell, base: Cell) -> list[tuple[Rate, Rate]]:
    """By turn; one at a time, a turn is a prompt's, and a prompt's turns are one pair."""
    prompts = {seen.batch: _prompt(seen) for seen in cell.observations if seen.in_flight == 1}
    theirs = {turn.batch: turn for turn in base.turns}
    found: dict[str | int, list[tuple[Turn, Turn]]] = {}
    for turn in cell.turns:
        if turn.batch in theirs:
            unit = prompts.get(turn.batch, turn.batch)
            found.setdefault(unit, []).append((turn, theirs[turn.batch]))
    return [(_sum_of(a for a, _ in same), _sum_of(b for _, b in same)) for same in found.values()]


def _sum_of(turns: Iterable[Turn]) -> Rate:
    told = [(turn.emitted, turn.seconds) for turn in turns]
    return sum(emitted for emitted, _ in told), sum(seconds for _, seconds in told)


def _pairs(ours: Sequence[Observation], theirs: Sequence[Observation]) -> Pairs:
    known = {(seen.batch, seen.case): seen for seen in theirs if not seen.error}
    return [
        (seen, known[seen.batch, seen.case])
        for seen in ours
        if not seen.error and (seen.batch, seen.case) in known
    ]


def _by_prompt(pairs: Pairs) -> list[Pairs]:
    """Pairs of one prompt together, whatever batch they were in: `name#2` is `name` again."""
    found: dict[str, Pairs] = {}
    for pair in pairs:
        found.setdefault(_prompt(pair[0]), []).append(pair)
    return list(found.values())


def _prompt(seen: Observation) -> str:
    return seen.case.partition("#")[0]


def _rates(pairs: Pairs) -> tuple[Rate, Rate]:
    ours, theirs = zip(*pairs, strict=True)
    return _sums(ours), _sums(theirs)


def _sums(seen: Sequence[Observation]) -> Rate:
    return sum(one.emitted for one in seen), sum(one.active_s for one in seen)


def _both(pairs: Pairs, latency: Callable[[Observation], float | None]) -> tuple[Array, Array]:
    """[prompts, repeats] each, of pairs in which both have it; NaN where there is no repeat."""
    rows = []
    for same in _by_prompt(pairs):
        told = [(latency(ours), latency(theirs)) for ours, theirs in same]
        rows.append([pair for pair in told if None not in pair])
    rows = [row for row in rows if row]
    table = np.full((len(rows), max(map(len, rows), default=0), 2), np.nan)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table[..., 0], table[..., 1]


def _against(
    group: str, cell: Cell, base: Cell, ratios: Mapping[str, Ratio], terms: Terms
) -> dict[str, float]:
    """The ratios once more, under the names that runs are compared by."""
    found: dict[str, float] = {}
    for name, ratio in ratios.items():
        found |= {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    plain = of_turns(base.turns, terms) if group == ALL else of_requests(base.of(group))
    speed = meters.TOKENS_PER_S.name
    if speed in plain:
        found[meters.PLAIN_TOKENS_PER_S.name] = plain[speed]
    if group == ALL and cell.peak_memory_bytes and base.peak_memory_bytes:
        found[meters.MEMORY_RATIO.name] = cell.peak_memory_bytes / base.peak_memory_bytes
    return found
