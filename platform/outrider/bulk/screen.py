"""The closing screen: what was done, what speculation gained, where things are. 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.bulk.progress import duration
from outrider.bulk.report import KindReport, ParityReport, Report

WIDTH = 80
NOTHING = "-"
NAME_WIDTH = 14
SHORT = 12  # characters of a fingerprint that are shown


def show_report(report: Report, console: Console) -> None:
    """Print one screen."""
    console.print()
    console.print(_headline(report))
    console.print()
    console.print(_table(report))
    if report.parity is not None:
        console.print(_parity(report.parity), highlight=False)
    console.print()
    console.print(_facts(report), soft_wrap=True)


def _headline(report: Report) -> Text:
    failed = report.num_rows_failed
    line = Text(f"{report.num_rows_done} rows done", style="bold green")
    line.append(f", {failed} failed", style="bold red" if failed else "dim")
    line.append(f" in {duration(report.duration_s)}", style="dim")
    if report.num_sessions > 1:
        line.append(f", {report.num_sessions} runs", style="dim")
    return line


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("kind", max_width=16, overflow="ellipsis", no_wrap=True)
    for name in ("rows", "plain", "spec.", "gain", "accepted", "draft", "per round"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("", "", "tok/s", "tok/s", "", "of tested", "tokens", "tokens", style="dim")
    kinds = report.by_kind if len(report.by_kind) > 1 else []
    for kind in kinds:
        table.add_row(*_cells(kind, kind.kind or "(none)"))
    table.add_row(*_cells(report.total, "all"), style="bold")
    return table


def _cells(kind: KindReport, name: str) -> list[str]:
    arm = kind.speculative
    return [
        name,
        str(arm.num_rows),
        _number(None if kind.plain is None else kind.plain.tokens_per_s, "{:.1f}"),
        _number(arm.tokens_per_s, "{:.1f}"),
        _number(kind.speedup_ratio, "{:.2f} x"),
        _number(arm.acceptance_ratio, "{:.0%}"),
        _number(arm.mean_draft_length, "{:.1f}"),
        _number(arm.tokens_per_round, "{:.2f}"),
    ]


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else form.format(value)


def _parity(parity: ParityReport) -> Text:
    compared, num_mismatches = parity.num_compared, parity.num_mismatches
    num_equal = compared - num_mismatches - parity.num_near_ties
    line = Text(f"\nparity with plain decoding: {compared} compared: {num_equal} equal, ")
    line.append(f"{parity.num_near_ties} near ties, ")
    style = "bold red" if num_mismatches else "bold green"
    line.append(f"{num_mismatches} mismatches", style=style)
    return line


def _facts(report: Report) -> Text:
    """One a line, never folded: paths and commands are there to be copied."""
    facts = dict(report.files)
    facts["fingerprint"] = ", ".join(name[:SHORT] for name in report.fingerprints)
    if report.run_id:
        facts["MLflow run"] = report.run_id
    if report.open_command:
        facts["open it with"] = report.open_command
    text = Text()
    for name, value in facts.items():
        text.append(f"{name:<{NAME_WIDTH}}", style="dim").append(f"{value}\n")
    text.rstrip()
    return text
