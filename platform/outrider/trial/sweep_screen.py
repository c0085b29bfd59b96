"""What a search shows: a table for each rung, and what it recommends. 100 columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.tracking.registry import Alias
from outrider.trial.halving import Fate
from outrider.trial.record import Ratio
from outrider.trial.sweep_record import Outcome, RungRecord, Standing

WIDTH = 100  # columns that the tables need
NAME_WIDTH = 42
NOTHING = "-"
WHY = {
    Fate.KEPT: "kept",
    Fate.WRONG: "dropped: its answers differ",
    Fate.BEHIND: "dropped: others are faster",
    Fate.SLOWER: "dropped: slower than plain",
    Fate.NO_GAIN: "dropped: no faster than plain",
}


@dataclass(frozen=True, slots=True)
class SweepScreen:
    """Shows rungs as they end. `confirm`: the command that confirms an outcome."""

    console: Console
    in_flight: int
    confirm: Callable[[Outcome], str]

    def rung(self, rung: RungRecord) -> None:
        """The fastest on top."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        title = f"rung {rung.number + 1}: {_count(len(rung.standings), 'candidate')},"
        title += f" {_count(rung.num_prompts, 'prompt')}"
        table.add_column(title, max_width=NAME_WIDTH, overflow="fold")
        for head in ("tok/s", "speed-up", "differ"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("")
        for standing in sorted(rung.standings, key=_speed, reverse=True):
            is_kept = standing.fate is Fate.KEPT
            table.add_row(*_cells(standing), style="" if is_kept else "dim")
        self.console.print()
        self.console.print(table, highlight=False, markup=False)

    def outcome(self, outcome: Outcome, num_prompts: int) -> None:
        self.console.print()
        measured = f"{_count(num_prompts, 'tuning prompt')}, {self.in_flight} in flight"
        for line in self._lines(outcome, measured):
            self.console.print(line, highlight=False, soft_wrap=True)

    def _lines(self, outcome: Outcome, measured: str) -> list[Text]:
        head = Text("recommended: ", style="bold")
        if outcome.speedup is None:
            head.append("plain decoding", style="bold yellow")
            return [head, Text(f"  no candidate is faster than draft=none ({measured})")]
        head.append(outcome.recommended, style="bold green")
        head.append(_named(outcome), style="not bold")
        speedup = f"  speed-up {_ratio(outcome.speedup)} over plain decoding ({measured})"
        return [
            head,
            Text(speedup),
            Text(f"  criteria on these prompts: {outcome.decision}: {outcome.reason}"),
            Text(f"  confirm it: {self.confirm(outcome)}"),
        ]


def _cells(standing: Standing) -> tuple[str, ...]:
    score = standing.score
    return (
        standing.candidate,
        f"{score.tokens_per_s:.1f}",
        NOTHING if score.speedup is None else _ratio(score.speedup),
        str(score.num_mismatches),
        WHY.get(standing.fate, f"dropped: {score.failure_ratio:.0%} of its requests fail"),
    )


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def _speed(standing: Standing) -> float:
    return standing.score.speedup.value if standing.score.speedup else 0.0


def _named(outcome: Outcome) -> str:
    """` (version 3, challenger)`."""
    if outcome.version is None:
        return ""
    challenger = f", {Alias.CHALLENGER}" if outcome.is_challenger else ""
    return f" (version {outcome.version}{challenger})"


def _count(num: int, noun: str) -> str:
    return f"{num} {noun}" if num == 1 else f"{num} {noun}s"
