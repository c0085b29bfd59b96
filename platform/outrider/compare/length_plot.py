"""Draft length over time: how the length rule follows what it sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from outrider.compare.drawing import QUIET, sheet, style, svg
from outrider.compare.look import Look, kind_looks
from outrider.compare.markup import Table
from outrider.compare.plot import Plot
from outrider.compare.series import WINDOW, lengths
from outrider.compare.trial_files import Trial
from outrider.trial.observation import Observation

TITLE = "Draft length over time"
CAPTION = (
    "Each dot is one request: drafted tokens per round, a plain round counting as 0. Lines are "
    "rolling medians over up to {window} requests of a kind. A rule that follows acceptance keeps "
    "kinds apart and settles; lines at 0 have gone back to plain decoding. Dotted uprights: "
    "another number in flight begins."
)
PANEL = 1.75  # inches
MARGIN = 0.5


def length_plot(trial: Trial, looks: Mapping[str, Look]) -> Plot | None:
    """None where nothing was drafted."""
    found = {
        entrant.name: [o for o in trial.observations if o.contender == entrant.name]
        for entrant in trial.record.entrants
        if entrant.baseline
    }
    found = {name: seen for name, seen in found.items() if any(o.drafted for o in seen)}
    if not found:
        return None
    kinds = kind_looks(sorted({o.kind for seen in found.values() for o in seen}))
    with style():
        figure, panels = sheet(MARGIN + PANEL * len(found), len(found), sharex=True, sharey=True)
        for axes, (name, seen) in zip(panels, found.items(), strict=True):
            _draw(axes, seen, kinds)
            _mark_starts(axes, trial.observations)
            axes.set_ylabel(f"{looks[name].letter}: tokens")
            axes.set_ylim(bottom=0)
        panels[-1].set_xlabel("seconds since the trial began")
        picture = svg(figure, "lengths", TITLE)
    return Plot(
        name="lengths",
        title=TITLE,
        caption=CAPTION.format(window=WINDOW),
        svg=picture,
        data=_table(found),
        key={name: looks[name] for name in found} | _named(kinds),
    )


def _named(kinds: Mapping[str, Look]) -> dict[str, Look]:
    """Kinds are told by their names, not by letters."""
    return {look.letter: _unlettered(look) for look in kinds.values()}


def _unlettered(look: Look) -> Look:
    return Look(letter=" ", colour=look.colour, dash=look.dash, marker=look.marker)


def _draw(axes: Axes, seen: Sequence[Observation], kinds: Mapping[str, Look]) -> None:
    for kind, look in kinds.items():
        points = lengths([o for o in seen if o.kind == kind])
        axes.scatter(
            points.at_s, points.tokens, color=look.colour, marker=look.marker, s=10, alpha=0.45
        )
        axes.plot(points.at_s, points.medians, color=look.colour, linestyle=look.dash)


def _mark_starts(axes: Axes, observations: Sequence[Observation]) -> None:
    starts: dict[int, float] = {}
    for seen in observations:
        starts[seen.in_flight] = min(seen.submitted_s, starts.get(seen.in_flight, seen.submitted_s))
    for in_flight, at_s in starts.items():
        axes.axvline(at_s, color=QUIET, linestyle="dotted", linewidth=1)
        axes.annotate(
            f"{in_flight} in flight",
            (at_s, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -9),
            textcoords="offset points",
            fontsize=8.5,
        )


def _table(found: Mapping[str, Sequence[Observation]]) -> Table:
    rows = [
        (name, o.kind, o.case, str(o.in_flight), f"{o.submitted_s:.1f}", *_drafted(o))
        for name, seen in found.items()
        for o in sorted(seen, key=lambda o: o.submitted_s)
    ]
    return Table(
        headings=("contender", "kind", "prompt", "in flight", "began, s", "per round", "rounds"),
        rows=rows,
        num_names=3,
    )


def _drafted(seen: Observation) -> tuple[str, str]:
    per_round = f"{seen.drafted / seen.num_rounds:.2f}" if seen.num_rounds else "-"
    return per_round, str(seen.num_rounds)
