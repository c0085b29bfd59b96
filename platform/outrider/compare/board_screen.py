"""The leaderboard on a terminal: 100 columns, or the most important ones where there are fewer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.compare.board import Board, Row
from outrider.compare.value import NOTHING, is_lower_better, shown

WIDTH = 100  # columns that the whole board needs
FIRST_TOKEN = "first_token_s_p95"
DECISION_STYLES = {"adopt": "bold green", "reject": "bold red", "undecided": "yellow"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the board."""

    heading: str
    cell: Callable[[Row], str | Text]
    figure: str = ""  # that it shows
    is_extra: bool = False  # left out on a narrow terminal
    layout: dict[str, Any] = field(default_factory=lambda: {"justify": "right", "no_wrap": True})


def show_board(board: Board, sort: str, console: Console) -> None:
    """Print the board, and what is not on it."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    columns = _columns(sort, console.width)
    for column in columns:
        table.add_column(column.heading, **column.layout)
    for row in board.rows:
        cells = (column.cell(row) for column in columns)
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
    console.print(table)
    console.print(Text(_remarks(board, sort), style="dim"))


def date(seconds: float) -> str:
    """`30 Nov 08:50`, in this machine's time."""
    return datetime.fromtimestamp(seconds).strftime("%d %b %H:%M")


def _columns(sort: str, width: int) -> list[Column]:
    """Those that fit, with the figure that the board is sorted by where no other shows it."""
    all_shown = {column.figure for column in COLUMNS}
    needed = WIDTH if sort in all_shown else WIDTH + SORT_WIDTH
    found = [column for column in COLUMNS if width >= needed or not column.is_extra]
    if sort not in {column.figure for column in found}:
        heading = "\n".join(sort.split("_")) if len(sort) > MAX_HEADING else sort
        found.insert(FIGURES_END, Column(heading, _figure(sort), sort))
    return found


SORT_WIDTH = 10  # of the column that is added
MAX_HEADING = 8  # characters of one line
FIGURES_END = 5  # behind the gain


def _figure(name: str) -> Callable[[Row], str]:
    return lambda row: shown(name, row.latest.run.metrics.get(name))


def _name(row: Row) -> str:
    one = row.latest
    return f"{one.name} [{one.part}]" if one.part == "confirmation" else one.name


def _gain(row: Row) -> str:
    gain = row.latest.measure("speedup_ratio")
    if gain is None:
        return NOTHING
    if gain.low is None or gain.high is None:
        return f"{gain.value:.2f}"
    return f"{gain.value:.2f} {gain.low:.2f}-{gain.high:.2f}"


def _per_round(row: Row) -> str:
    value = row.latest.run.metrics.get("tokens_per_round")
    return NOTHING if value is None else f"{value:.2f}"


def _decision(row: Row) -> Text:
    one = row.latest
    decision = one.run.tags.get("decision", "")
    said = decision or ("" if one.is_finished else one.run.status.lower())
    return Text(said or NOTHING, style=DECISION_STYLES.get(said, "dim"))


COLUMNS = (
    Column("release", lambda row: row.latest.title or NOTHING, layout={"max_width": 10}),
    Column("name", _name, layout={"overflow": "fold", "min_width": 14}),
    Column("in\nflight", lambda row: row.latest.in_flight or NOTHING),
    Column("\ntok/s", _figure("tokens_per_s"), "tokens_per_s"),
    Column("gain and\nits interval", _gain, "speedup_ratio"),
    Column("\nacc.", _figure("acceptance_ratio"), "acceptance_ratio", is_extra=True),
    Column("per\nround", _per_round, "tokens_per_round", is_extra=True),
    Column("first\np95", _figure(FIRST_TOKEN), FIRST_TOKEN),
    Column("decision", _decision, layout={"no_wrap": True}),
    Column("date", lambda row: date(row.latest.run.started_s), is_extra=True),
    Column("runs", lambda row: str(row.num_runs), is_extra=True),
)


def _remarks(board: Board, sort: str) -> str:
    order = "least" if is_lower_better(sort) else "most"
    parts = [
        f"sorted by {sort}, {order} first; gain: tokens per second over plain decoding's; "
        "first: p95 to the first token; runs: the latest counts"
    ]
    if board.num_more:
        parts.append(f"{board.num_more} more: top={len(board.rows) + board.num_more}")
    if board.num_filtered:
        parts.append(f"{board.num_filtered} do not meet where")
    if board.num_unfinished:
        parts.append(f"{board.num_unfinished} runs did not finish: where=['status!=FINISHED']")
    return "; ".join(parts)
