"""Run the experiments asked for, print the table, write the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from outrider.bench.experiments import EXPERIMENTS
from outrider.bench.figure import Figure
from outrider.bench.report import print_figures, write_figures
from outrider.bench.workbench import Workbench
from outrider.core import UserError


def run(bench: Workbench, only: Sequence[str], out: Path, console: Console) -> list[Figure]:
    """Measure the experiments named in `only` (none named: all). The file grows as they end."""
    figures: list[Figure] = []
    for name in chosen(only):
        figures += EXPERIMENTS[name](bench)
        write_figures(figures, out)
    print_figures(figures, console)
    console.print(f"written to {out}")
    return figures


def chosen(only: Sequence[str]) -> list[str]:
    """The experiments' names, in order. UserError lists them where one is not known."""
    for name in only:
        if name not in EXPERIMENTS:
            raise UserError(f"bench.only: {name!r} is not one of {', '.join(EXPERIMENTS)}")
    return list(only) or list(EXPERIMENTS)
