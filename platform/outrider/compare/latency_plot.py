"""Latency distributions: seconds by percentile, the slow end drawn wide."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from outrider.compare.drawing import sheet, spread, style, svg
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.plot import Plot
from outrider.compare.series import POINTS, Latencies, latencies
from outrider.compare.trial_files import Trial
from outrider.compare.value import shown_seconds

FIGURES = {  # field of an observation: its title, what is measured
    "first_token_s": ("Time to the first token", "from submitting a request to its first token"),
    "inter_token_s": ("Time from token to token", "a request's mean from token to token"),
    "total_s": ("Time to the whole answer", "from submitting a request to its last token"),
}
CAPTION = (
    "{what}, over all full answers; lower is better. The axis below is stretched towards the slow "
    "end; large marks are p50, p95 and p99. With {count} requests a line ends at its slowest one; "
    "percentiles behind that can't be told."
)
TICKS = (0, 50, 90, 95, 99)
PANEL, MARGIN = 2.1, 0.5  # inches
LETTER = 0.08  # of the axis: the height of a letter


def latency_plots(trial: Trial, looks: Mapping[str, Look]) -> list[Plot]:
    """One for each figure that any request has."""
    plots = (_plot(trial, looks, figure) for figure in FIGURES)
    return [plot for plot in plots if plot is not None]


def _plot(trial: Trial, looks: Mapping[str, Look], figure: str) -> Plot | None:
    title, what = FIGURES[figure]
    found = _found(trial, figure)
    places = sorted({in_flight for _, in_flight in found})
    if not places:
        return None
    name = figure.removesuffix("_s").replace("_", "-")
    with style():
        canvas, panels = sheet(MARGIN + PANEL * len(places), len(places), sharex=True)
        for axes, place in zip(panels, places, strict=True):
            shown = {name: seen for (name, in_flight), seen in found.items() if in_flight == place}
            for contender, seen in shown.items():
                _draw(axes, seen, looks[contender])
            _dress(axes, place)
            _letter(axes, shown, looks)
        panels[-1].set_xlabel("requests that were at least as fast")
        picture = svg(canvas, name, title)
    count = max(len(seen.seconds) for seen in found.values())
    return Plot(
        name=name,
        title=title,
        caption=CAPTION.format(what=what[0].upper() + what[1:], count=count),
        svg=picture,
        data=_table(found),
        key={name: looks[name] for name in dict.fromkeys(contender for contender, _ in found)},
    )


def _found(trial: Trial, figure: str) -> dict[tuple[str, int], Latencies]:
    groups = dict.fromkeys(
        (entrant.name, in_flight)
        for entrant in trial.record.entrants
        for in_flight in sorted({seen.in_flight for seen in trial.observations})
    )
    found = {
        (name, in_flight): latencies(
            [o for o in trial.observations if (o.contender, o.in_flight) == (name, in_flight)],
            figure,
        )
        for name, in_flight in groups
    }
    return {key: seen for key, seen in found.items() if seen.seconds}


def tail(share: float) -> float:
    """Where a share of requests stands on the axis: 50 % at 0.3, 90 % at 1, 99 % at 2."""
    return -math.log10(1 - share)


def _draw(axes: Axes, seen: Latencies, look: Look) -> None:
    x = [tail(share) for share in seen.shares]
    axes.plot(x, seen.seconds, color=look.colour, linestyle=look.dash, linewidth=1.6)
    marked = [tail(point / 100) for point in POINTS if point / 100 <= seen.shares[-1]]
    values = np.interp(marked, x, seen.seconds)
    axes.scatter(marked, values, color=look.colour, marker=look.marker, s=30, zorder=3)


def _letter(axes: Axes, shown: Mapping[str, Latencies], looks: Mapping[str, Look]) -> None:
    """At the ends of the lines, moved apart where they would cover each other."""
    ends = [seen.seconds[-1] for seen in shown.values()]
    places = spread(ends, LETTER * axes.get_ylim()[1])
    for (contender, seen), place in zip(shown.items(), places, strict=True):
        axes.annotate(
            looks[contender].letter,
            (tail(seen.shares[-1]), place),
            xytext=(5, -3),
            textcoords="offset points",
            fontsize=9,
            annotation_clip=False,
        )


def _dress(axes: Axes, in_flight: int) -> None:
    axes.set_xticks(
        [tail(point / 100) for point in TICKS], [f"p{point}" if point else "all" for point in TICKS]
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"{in_flight} in flight")
    axes.yaxis.set_major_formatter(lambda value, _: shown_seconds(value) if value else "0")


def _table(found: Mapping[tuple[str, int], Latencies]) -> Table:
    rows = [
        (name, str(in_flight), *map(shown_seconds, seen.percentiles), str(len(seen.seconds)))
        for (name, in_flight), seen in found.items()
    ]
    points = (f"p{point}" for point in POINTS)
    return Table(headings=("contender", "in flight", *points, "answers"), rows=rows)
