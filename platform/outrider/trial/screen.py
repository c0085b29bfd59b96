"""The closing screen of a trial: what was measured, and what follows. 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from outrider.telemetry import meters
from outrider.telemetry.meter import Meter
from outrider.trial.criteria import told
from outrider.trial.group import ALL
from outrider.trial.judgement import Decision, Verdict
from outrider.trial.record import Entrant, Figures, TrialRecord

NAME_WIDTH = 26
FOUR_DIGITS = 999.5
NOTHING = "-"
MILLI = 1e3
GIB = 2**30
STYLES = {
    Decision.ADOPT: "bold green",
    Decision.REJECT: "bold red",
    Decision.UNDECIDED: "bold yellow",
}
LATENCIES = {  # meter: (title, unit, times the seconds)
    meters.FIRST_TOKEN_S: ("first token", "ms", MILLI),
    meters.INTER_TOKEN_S: ("token to token", "ms", MILLI),
    meters.TOTAL_S: ("whole answer", "s", 1.0),
}


@dataclass(frozen=True, slots=True)
class Screen:
    """Shows a record. `currency` of the costs; `cores` given to each contender."""

    record: TrialRecord
    currency: str
    cores: int

    def show(self, console: Console) -> None:
        for part in self._parts():
            console.print()
            console.print(part, highlight=False)

    def _parts(self) -> Iterable[RenderableType]:
        for in_flight in dict.fromkeys(one.in_flight for one in self.record.figures):
            rows = [one for one in self.record.figures if one.in_flight == in_flight]
            whole = [one for one in rows if one.group == ALL]
            yield self._speed(in_flight, whole)
            yield self._latency(whole)
            yield self._cost(whole)
            yield from self._groups([one for one in rows if one.ratios and one.group != ALL])
        for entrant in self.record.entrants:
            if entrant.judgement is not None:
                yield _decision(entrant)
        yield self._facts()

    def _speed(self, in_flight: int, rows: Sequence[Figures]) -> Table:
        heads = ("tok/s", "speed-up", "accepted", "per round", "draft", "outputs")
        table = _table(f"{in_flight} in flight", *heads)
        units = ("", "of plain", "of tested", "tokens", "tokens", "=/near/not")
        table.add_row("", *units, style="dim")
        for one in rows:
            table.add_row(
                one.contender,
                _number(one.metrics, meters.TOKENS_PER_S, "{:.1f}"),
                _ratio(one),
                _number(one.metrics, meters.ACCEPTANCE_RATIO, "{:.0%}"),
                _number(one.metrics, meters.TOKENS_PER_ROUND, "{:.2f}"),
                _number(one.metrics, meters.MEAN_DRAFT_LENGTH, "{:.1f}"),
                _parity(one.metrics),
            )
        return table

    def _latency(self, rows: Sequence[Figures]) -> Table:
        heads = [f"{title}, {unit}" for title, unit, _ in LATENCIES.values()]
        table = _table("p50 / p95 / p99", *heads)
        for one in rows:
            table.add_row(one.contender, *(_percentiles(one.metrics, meter) for meter in LATENCIES))
        return table

    def _cost(self, rows: Sequence[Figures]) -> Table:
        heads = ("memory", "cores", "GPU", "energy", "price", "requests", "failed")
        table = _table("cost", *heads)
        units = ("GiB", "busy", "busy", "J/token", f"{self.currency}/million", "", "")
        table.add_row("", *units, style="dim")
        for one in rows:
            table.add_row(
                one.contender,
                _number(one.metrics, meters.PEAK_MEMORY_BYTES, "{:.2f}", 1 / GIB),
                _number(one.metrics, meters.CPU_RATIO, "{:.2f}", self.cores),
                _number(one.metrics, meters.GPU_RATIO, "{:.0%}"),
                _number(one.metrics, meters.JOULES_PER_TOKEN, "{:.2f}"),
                _number(one.metrics, meters.COST_PER_MILLION_TOKENS, "{:.2f}"),
                _number(one.metrics, meters.NUM_REQUESTS, "{:.0f}"),
                _failures(one.metrics),
            )
        return table

    def _groups(self, rows: Sequence[Figures]) -> Iterable[Table]:
        for name in dict.fromkeys(one.contender for one in rows):
            table = _table("group", "requests", "tok/s", "speed-up", "accepted")
            table.title, table.title_justify = f"{name}, by group", "left"
            for one in rows:
                if one.contender == name:
                    table.add_row(
                        one.group,
                        _number(one.metrics, meters.NUM_REQUESTS, "{:.0f}"),
                        _number(one.metrics, meters.TOKENS_PER_S, "{:.1f}"),
                        _ratio(one),
                        _number(one.metrics, meters.ACCEPTANCE_RATIO, "{:.0%}"),
                    )
            yield table

    def _facts(self) -> Text:
        record = self.record
        return Text(
            f"{record.num_cases} {record.part} prompts of {record.evaluation}"
            f" ({record.evaluation_sha256[:12]}), criteria {record.criteria_sha256[:12]},"
            f" intervals {record.criteria['confidence']:.0%}",
            style="dim",
        )


def _decision(entrant: Entrant) -> Text:
    """The decision, why, and what failed or is open."""
    judgement = entrant.judgement
    assert judgement is not None
    version = "" if entrant.version is None else f" (version {entrant.version})"
    text = Text(f"{entrant.name}{version}: ", style="bold")
    text.append(judgement.decision.value, style=STYLES[judgement.decision])
    text.append(f": {judgement.reason}", style="not bold")
    judged = [one for one in judgement.findings if one.counts and one.verdict is not Verdict.PASS]
    for one in sorted(judged, key=lambda one: one.verdict is not Verdict.FAIL):
        style = "red" if one.verdict is Verdict.FAIL else "not bold dim"
        text.append(f"\n  {one.verdict.value:<13}{told(one)}", style=style)
    few = [one.subject for one in judgement.findings if not one.counts]
    if few:
        text.append(f"\n  not judged, too few pairs: {'; '.join(few)}", style="not bold dim")
    return text


def _table(first: str, *heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(
        first, max_width=NAME_WIDTH, overflow="fold"
    )  # a cut name may hide what differs
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _number(metrics: Mapping[str, float], meter: Meter, form: str, times: float = 1.0) -> str:
    value = metrics.get(meter.name)
    return NOTHING if value is None else form.format(value * times)


def _ratio(one: Figures) -> str:
    ratio = one.ratios.get(meters.SPEEDUP_RATIO.name)
    return NOTHING if ratio is None else f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def _parity(metrics: Mapping[str, float]) -> str:
    """Equal to plain decoding's, parted at a near tie, otherwise different."""
    compared = metrics.get(meters.NUM_COMPARED.name)
    if compared is None:
        return NOTHING
    ties, differ = metrics[meters.NUM_NEAR_TIES.name], metrics[meters.NUM_MISMATCHES.name]
    return f"{compared - ties - differ:.0f}/{ties:.0f}/{differ:.0f}"


def _percentiles(metrics: Mapping[str, float], meter: Meter) -> str:
    times = LATENCIES[meter][2]
    values = [metrics.get(meter.at(percent)) for percent in meters.PERCENTS]
    known = [_short(value * times) for value in values if value is not None]
    return " / ".join(known) or NOTHING


def _short(value: float) -> str:
    """Three digits, or as many as stand before the point."""
    return f"{value:.3g}" if value < FOUR_DIGITS else f"{value:.0f}"


def _failures(metrics: Mapping[str, float]) -> str:
    """`3: 2 lost, 1 timeout`."""
    total, mark = metrics.get(meters.NUM_FAILED.name, 0.0), meters.NUM_FAILED.of("failure:")
    kinds = [
        f"{value:.0f} {name.removeprefix(mark)}"
        for name, value in metrics.items()
        if name.startswith(mark)
    ]
    return f"{total:.0f}: {', '.join(kinds)}" if kinds else f"{total:.0f}"
