"""Acceptance by draft position, and how often each position was tested."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from outrider.compare.drawing import sheet, style, svg
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.plot import Plot
from outrider.compare.series import Positions, positions
from outrider.compare.trial_files import Trial

TITLE = "Acceptance by draft position"
CAPTION = (
    "Of the drafted tokens that were tested at each position, the share that the target accepted: "
    "a curve that stays high pays for longer drafts. Below, how many were tested (a rejection ends "
    "the testing, so that later positions are reached by good drafts only); positions tested fewer "
    "than {few} times are faint. All numbers in flight together."
)
FEW = 30  # tests, below which a share says little
FAINT, CLEAR = 0.25, 1.0


def acceptance_plot(trial: Trial, looks: Mapping[str, Look]) -> Plot | None:
    """None where nothing was drafted."""
    found = {
        entrant.name: positions([o for o in trial.observations if o.contender == entrant.name])
        for entrant in trial.record.entrants
        if entrant.baseline
    }
    found = {name: seen for name, seen in found.items() if seen.attempts}
    if not found:
        return None
    with style():
        figure, (top, bottom) = sheet(4.0, 2, sharex=True, height_ratios=[3, 1])
        for name, seen in found.items():
            _draw(top, bottom, seen, looks[name])
        top.set_ylim(0, 1.02)
        top.set_ylabel("accepted / tested")
        top.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        bottom.set_yscale("log")
        bottom.yaxis.set_major_locator(LogLocator(numticks=4))
        bottom.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        bottom.yaxis.set_minor_formatter(NullFormatter())
        bottom.set_ylim(bottom=0.8)
        bottom.set_ylabel("tested")
        bottom.set_xlabel("position in the draft")
        bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
        picture = svg(figure, "acceptance", TITLE)
    return Plot(
        name="acceptance",
        title=TITLE,
        caption=CAPTION.format(few=FEW),
        svg=picture,
        data=_table(found),
        key={name: looks[name] for name in found},
    )


def _draw(top: Axes, bottom: Axes, seen: Positions, look: Look) -> None:
    places = range(1, len(seen.attempts) + 1)
    colours = [to_rgba(look.colour, CLEAR if n >= FEW else FAINT) for n in seen.attempts]
    for axes, values in ((top, seen.ratios), (bottom, list(seen.attempts))):
        axes.plot(places, values, color=look.colour, linestyle=look.dash, alpha=0.5)
        axes.scatter(places, values, color=colours, marker=look.marker, s=22, zorder=3)


def _table(found: Mapping[str, Positions]) -> Table:
    rows = [
        (name, str(index + 1), f"{ratio:.1%}", f"{attempts:,}", f"{accepts:,}")
        for name, seen in found.items()
        for index, (ratio, attempts, accepts) in enumerate(
            zip(seen.ratios, seen.attempts, seen.accepts, strict=True)
        )
    ]
    return Table(headings=("contender", "position", "accepted", "tested", "kept"), rows=rows)
