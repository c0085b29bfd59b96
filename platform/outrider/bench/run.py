"""Run the experiments asked for, print the table, write the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from outrider.bench.figure import Figure
from outrider.bench.report import print_figures, write_figures
from outrider.core import UserError
from outrider.tracking.tracker import NoRun, Run

B = TypeVar("B")  # what the experiments work with


def run(
    bench: B,
    experiments: Mapping[str, Callable[[B], list[Figure]]],
    only: Sequence[str],
    out: Path,
    console: Console,
    record: Run | None = None,
) -> list[Figure]:
    """Measure the experiments named in `only` (none named: all). File and record grow as they
    end.
    """
    record = record or NoRun()
    figures: list[Figure] = []
    for name in chosen(only, experiments):
        measured = experiments[name](bench)
        figures += measured
        write_figures(figures, out)
        record.log_final({f"figure.{each.name}": each.value for each in measured})
    record.log_artifact(out)
    print_figures(figures, console)
    console.print(f"written to {out}")
    return figures


def chosen(only: Sequence[str], known: Iterable[str]) -> list[str]:
    """The experiments' names, in order. UserError lists them where one is not known."""
    names = list(known)
    for name in only:
        if name not in names:
            raise UserError(f"bench.only: {name!r} is not one of {', '.join(names)}")
    return list(only) or names
