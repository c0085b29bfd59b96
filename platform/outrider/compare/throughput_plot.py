"""Tokens per second by the number of requests in flight."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from outrider.compare.drawing import sheet, style, svg
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.plot import Plot
from outrider.compare.series import Throughput, throughput
from outrider.compare.trial_files import Trial

TITLE = "Throughput by requests in flight"
CAPTION = (
    "Tokens of full answers per second of all turns; bars are {confidence:.0%} intervals by "
    "bootstrap over turns. Plain decoding is grey. Whether two are really apart is told by the "
    "speed-up below, which pairs their turns."
)
WIDEST = 0.6  # of the distance of two places: contenders stand beside each other
STEP = 0.14  # the same between two contenders, at most

Found = Mapping[str, Mapping[int, Throughput]]


def throughput_plot(trial: Trial, looks: Mapping[str, Look]) -> Plot | None:
    """None where nothing was timed."""
    confidence = float(trial.record.criteria.get("confidence", 0.95))
    found = {
        entrant.name: _of(trial, entrant.name, confidence) for entrant in trial.record.entrants
    }
    places = sorted({in_flight for rates in found.values() for in_flight in rates})
    if not places:
        return None
    step = min(STEP, WIDEST / len(found))
    with style():
        figure, (axes,) = sheet(3.4)
        for index, (name, rates) in enumerate(found.items()):
            _draw(axes, rates, places, step * (index - (len(found) - 1) / 2), looks[name])
        axes.set_xticks(range(len(places)), [str(place) for place in places])
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("requests in flight")
        axes.set_ylabel("tokens per second")
        axes.grid(visible=False, axis="x")
        picture = svg(figure, "throughput", TITLE)
    return Plot(
        name="throughput",
        title=TITLE,
        caption=CAPTION.format(confidence=confidence),
        svg=picture,
        data=_table(found),
        key={name: looks[name] for name in found},
    )


def _of(trial: Trial, contender: str, confidence: float) -> dict[int, Throughput]:
    turns = [turn for turn in trial.turns if turn.contender == contender]
    found = {}
    for in_flight in sorted({turn.in_flight for turn in turns}):
        rate = throughput([turn for turn in turns if turn.in_flight == in_flight], confidence)
        if rate is not None:
            found[in_flight] = rate
    return found


def _draw(
    axes: Axes, rates: Mapping[int, Throughput], places: list[int], offset: float, look: Look
) -> None:
    x = [places.index(in_flight) + offset for in_flight in rates]
    y = [rate.value for rate in rates.values()]
    below = [max(0.0, rate.value - rate.low) for rate in rates.values()]
    above = [max(0.0, rate.high - rate.value) for rate in rates.values()]
    axes.errorbar(
        x,
        y,
        yerr=[below, above],
        color=look.colour,
        linestyle="none",
        marker=look.marker,
        markersize=6,
        capsize=3,
    )
    axes.plot(x, y, color=look.colour, linestyle=look.dash, linewidth=1, alpha=0.4)
    for place, value in zip(x, y, strict=True):
        axes.annotate(
            look.letter, (place, value), xytext=(6, 3), textcoords="offset points", fontsize=8.5
        )


def _table(found: Found) -> Table:
    rows = [
        (name, str(in_flight), f"{r.value:.1f}", f"{r.low:.1f} to {r.high:.1f}", str(r.num_turns))
        for name, rates in found.items()
        for in_flight, r in rates.items()
    ]
    return Table(headings=("contender", "in flight", "tok/s", "interval", "turns"), rows=rows)
