"""The difference of two releases on a terminal: 100 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.compare.board_screen import date
from outrider.compare.diff import Block, Diff, FigureChange
from outrider.compare.value import NOTHING, Measure, is_lower_better, shown, shown_interval

SAID = {True: "overlap", False: "apart", None: ""}
MIN_CHANGE = 0.005  # a smaller change is shown as none


def show_diff(found: Diff, console: Console) -> None:
    """Print which keys differ, then each figure of both, for each number in flight."""
    console.print(Text(f"{found.old.title}  ->  {found.new.title}", style="bold"))
    console.print()
    console.print(_keys(found) if found.keys else "no setting differs")
    for block in found.blocks:
        console.print()
        console.print(_headline(block))
        console.print(_figures(block))
    if not found.blocks:
        console.print("\nno figures: the two were not measured at one number in flight")


def _keys(found: Diff) -> Table:
    table = _table()
    for heading in ("setting", "old", "new"):
        table.add_column(heading, overflow="fold")
    for change in found.keys:
        table.add_row(Text(change.key), Text(change.old), Text(change.new))
    return table


def _headline(block: Block) -> Text:
    line = Text(f"{block.in_flight or 'any number'} in flight", style="bold")
    if block.part:
        line.append(f", {block.part} prompts", style="bold")
    if not block.is_one_trial:
        dates = f"{date(block.old.run.started_s)}, {date(block.new.run.started_s)}"
        line.append(f"  not measured in turn ({dates}): compare with care", style="yellow")
    return line


def _figures(block: Block) -> Table:
    table = _table()
    table.add_column("figure", overflow="fold")
    for heading in ("old", "new"):
        table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("interval", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("intervals", no_wrap=True)
    for figure in block.figures:
        table.add_row(*_cells(figure))
    if block.num_equal:
        table.add_row(Text(f"{block.num_equal} more are equal", style="dim"))
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _cells(figure: FigureChange) -> list[Text]:
    name = figure.name
    return [
        Text(name),
        Text(shown(name, figure.old.value)),
        Text(_interval(name, figure.old), style="dim"),
        Text(shown(name, figure.new.value)),
        Text(_interval(name, figure.new), style="dim"),
        _change(figure),
        Text(SAID[figure.overlaps]),
    ]


def _interval(name: str, measure: Measure) -> str:
    return shown_interval(name, measure.low, measure.high)


def _change(figure: FigureChange) -> Text:
    ratio = figure.change_ratio
    if ratio is None:
        return Text(NOTHING)
    is_better = (ratio < 0) == is_lower_better(figure.name)
    style = "dim" if abs(ratio) < MIN_CHANGE or figure.overlaps else _style(figure, is_better)
    return Text(f"{100 * ratio:+.1f}%", style=style)


def _style(figure: FigureChange, is_better: bool) -> str:  # noqa: FBT001
    if not _is_judged(figure.name):
        return ""
    return "green" if is_better else "red"


def _is_judged(name: str) -> bool:
    """Counts and draft lengths are neither better nor worse."""
    return is_lower_better(name) or name.startswith(("tokens_per_s", "speedup_ratio"))
