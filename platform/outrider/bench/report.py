"""The figures as people and programs read them: a table, and `figures.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from outrider.bench.figure import Figure, Unit


def write_figures(figures: Sequence[Figure], path: Path) -> None:
    """Write [{name, what, value, bound, aim, is_ceiling, unit, low, high, conditions, details,
    is_reached}]."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([figure.to_dict() for figure in figures], indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def print_figures(figures: Sequence[Figure], console: Console) -> None:
    """One line a figure; a figure that misses its bound says so."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure")
    for heading in ("measured", "95 %", "at least", "aim", ""):
        table.add_column(heading, justify="right")
    for figure in figures:
        table.add_row(*_cells(figure))
    console.print(table)
    _print_loads(figures, console)
    if figures:
        console.print(f"\n{figures[0].conditions.split('; tok/s')[0]}", style="dim")


def _print_loads(figures: Sequence[Figure], console: Console) -> None:
    """Latencies of every arm that knows them: those whose details are a summary of a load."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("ms at p50 / p95 / p99", overflow="fold")
    for heading in ("first token", "inter-token", "whole answer", "tok/s", "requests", "errors"):
        table.add_column(heading, justify="right", no_wrap=True)
    seen = []
    for figure in figures:
        for arm, load in figure.details.items():
            if isinstance(load, Mapping) and "total_s" in load and load not in seen:
                seen.append(load)
                table.add_row(f"{figure.name}: {arm}", *_load_cells(load))
    if seen:
        console.print()
        console.print(table)


def _load_cells(load: Mapping[str, Any]) -> tuple[str, ...]:
    errors = ", ".join(f"{count} {kind}" for kind, count in load["errors"].items())
    latencies = [load[name] for name in ("first_token_s", "inter_token_s", "total_s")]
    return (
        *(_milliseconds(points) for points in latencies),
        f"{load['tokens_per_s']:.1f}",
        str(load["num_requests"]),
        errors or "none",
    )


def _milliseconds(points: Mapping[str, float] | None) -> str:
    if points is None:
        return "-"
    return " / ".join(f"{1000 * seconds:.0f}" for seconds in points.values())


def _cells(figure: Figure) -> tuple[str, ...]:
    show = _SHOWN[figure.unit]
    interval = "" if figure.low is None else f"{figure.low:.2f} to {figure.high:.2f}"
    bound = f"≤ {show(figure.bound)}" if figure.is_ceiling else show(figure.bound)
    verdict = "[green]ok[/]" if figure.is_reached else "[red]missed[/]"
    return figure.what, show(figure.value), interval, bound, show(figure.aim), verdict


_SHOWN: dict[Unit, Callable[[float], str]] = {
    Unit.TIMES: "{:.2f} x".format,
    Unit.SHARE: lambda value: f"{100 * value:.1f} %",
    Unit.MILLISECONDS: "{:.1f} ms".format,
    Unit.COUNT: "{:.0f}".format,
}
