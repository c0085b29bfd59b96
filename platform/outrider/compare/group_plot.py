"""Speed-up by group of requests, with intervals: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from outrider.compare.drawing import QUIET, sheet, style, svg
from outrider.compare.look import Look
from outrider.compare.markup import Table
from outrider.compare.plot import Plot
from outrider.compare.trial_files import Trial
from outrider.telemetry import meters
from outrider.trial.record import Figures, Ratio

CAPTION = (
    "Tokens per second over plain decoding's on the same requests, with {confidence:.0%} intervals "
    "by paired bootstrap. An interval right of the line at 1 is faster than plain decoding, one "
    "left of it slower, one across it undecided. Groups with fewer than {few} pairs are faint: "
    "they are not judged."
)
ROW, MARGIN = 0.17, 0.75  # inches
SPEEDUP = meters.SPEEDUP_RATIO.name
FAINT, CLEAR = 0.35, 1.0


def group_plots(trial: Trial, looks: Mapping[str, Look]) -> list[Plot]:
    """One for each number in flight."""
    figures = [one for one in trial.record.figures if SPEEDUP in one.ratios]
    places = sorted({one.in_flight for one in figures})
    return [_plot(trial, looks, place, figures) for place in places]


def _plot(trial: Trial, looks: Mapping[str, Look], place: int, figures: Sequence[Figures]) -> Plot:
    title = f"Speed-up by group, {place} in flight"
    criteria = trial.record.criteria
    found = {(f.group, f.contender): f.ratios[SPEEDUP] for f in figures if f.in_flight == place}
    groups = sorted(
        {group for group, _ in found}, key=lambda group: (group != "", ":" in group, group)
    )
    names = list(dict.fromkeys(name for _, name in found))
    few = int(criteria.get("min_pairs", 1))
    with style():
        height = MARGIN + ROW * len(groups) * (len(names) + 1)
        canvas, (axes,) = sheet(height)
        for (group, name), ratio in found.items():
            at = groups.index(group) + (names.index(name) + 1) / (len(names) + 1) - 0.5
            _draw(axes, at, ratio, looks[name], CLEAR if ratio.num_pairs >= few else FAINT)
        _dress(axes, groups)
        picture = svg(canvas, f"groups-{place}", title)
    return Plot(
        name=f"groups-{place}",
        title=title,
        caption=CAPTION.format(confidence=float(criteria.get("confidence", 0.95)), few=few),
        svg=picture,
        data=_table(found, groups),
        key={name: looks[name] for name in names},
    )


def _draw(axes: Axes, at: float, ratio: Ratio, look: Look, alpha: float) -> None:
    axes.plot([ratio.low, ratio.high], [at, at], color=look.colour, alpha=alpha, linewidth=2.2)
    axes.scatter([ratio.value], [at], color=look.colour, marker=look.marker, s=24, alpha=alpha)
    axes.annotate(
        look.letter, (ratio.high, at), xytext=(4, -3), textcoords="offset points", fontsize=8.5
    )


def _dress(axes: Axes, groups: Sequence[str]) -> None:
    axes.axvline(1, color=QUIET, linewidth=1.4)
    axes.set_yticks(range(len(groups)), [group or "all" for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel("times plain decoding")
    axes.grid(visible=False, axis="y")
    for index in range(0, len(groups), 2):
        axes.axhspan(index - 0.5, index + 0.5, color=QUIET, alpha=0.08, linewidth=0)


def _table(found: Mapping[tuple[str, str], Ratio], groups: Sequence[str]) -> Table:
    rows = [
        (group or "all", name, f"{r.value:.2f}", f"{r.low:.2f} to {r.high:.2f}", str(r.num_pairs))
        for group in groups
        for (key, name), r in found.items()
        if key == group
    ]
    headings = ("group", "contender", "speed-up", "interval", "pairs")
    return Table(headings=headings, rows=rows, num_names=2)
