"""Matplotlib figures as SVG for inside a page: no file, no screen, the same bytes each time.

Figures are made without pyplot, which would keep them. Text stays text, in the page's font and
colour, and is measured with Matplotlib's own font, which is wider than most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from outrider.compare.markup import tagged

WIDTH = 4.6  # inches: at 390 pixels the letters are as large as the page's small print
QUIET = "#8c8c8c"  # axes and grid: seen on white and on black
STYLE: Any = {  # names of Matplotlib's own settings
    "svg.hashsalt": "outrider",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may hold dollars
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "axes.edgecolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": QUIET,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "lines.linewidth": 1.8,
}


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's settings for as long as one figure is drawn."""
    with mpl.rc_context(STYLE):
        yield


def sheet(height: float, rows: int = 1, **kwargs: Any) -> tuple[Figure, list[Axes]]:
    """A figure of `height` inches with `rows` panels, one above the other."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasSVG(figure)
    panels = figure.subplots(rows, 1, squeeze=False, **kwargs)
    return figure, [row[0] for row in panels]


def svg(figure: Figure, name: str, title: str) -> str:
    """`figure` as an element with a title. `name` keeps its ids apart from other figures'."""
    text = StringIO()
    figure.savefig(text, format="svg")
    body = text.getvalue()
    body = body[body.index("<svg") :]
    body = re.sub(
        r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.S
    )
    body = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    opened, closed, rest = body.partition(">")
    opened = re.sub(r' (width|height)="[^"]*"| xmlns(:\w+)?="[^"]*"', "", opened)
    return f'{opened} role="img"{closed}{tagged("title", title)}{rest}'


def spread(values: list[float], gap: float) -> list[float]:
    """`values` moved apart until no two are nearer than `gap`, in their order, as little as that
    takes from the lowest up."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    moved = list(values)
    for before, index in pairwise(order):
        moved[index] = max(moved[index], moved[before] + gap)
    return moved
