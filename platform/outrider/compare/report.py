"""One trial as one HTML file: decisions, conditions, figures, plots. It loads nothing.

The first thing on the page is what was decided and why; the last is what it rests on in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from outrider.compare.acceptance_plot import acceptance_plot
from outrider.compare.finding_table import finding_table
from outrider.compare.group_plot import group_plots
from outrider.compare.latency_plot import latency_plots
from outrider.compare.length_plot import length_plot
from outrider.compare.look import Look, looks
from outrider.compare.markup import Table, around, definitions, details, swatch, tagged
from outrider.compare.plot import Plot
from outrider.compare.release_table import figure_table, latency_table, settings_table
from outrider.compare.throughput_plot import throughput_plot
from outrider.compare.trial_files import Trial
from outrider.core import UserError
from outrider.telemetry import meters
from outrider.tracking.fingerprint import flatten
from outrider.trial.judgement import Decision
from outrider.trial.record import Entrant

SHORT = 12  # characters of a digest that are shown
SAID = {
    Decision.ADOPT: "Adopt",
    Decision.REJECT: "Reject",
    Decision.UNDECIDED: "Undecided",
}
TOLD = {  # condition: how the page calls it; the others are folded away
    "hardware.cpu": "Machine",
    "hardware.gpus": "GPU",
    "cores": "Threads",
    "model": "Model",
    "dtype": "Arithmetic",
    "runtime": "Runtime",
    "prefix_cache": "Prefix cache",
    "shared_corpus": "Shared corpus",
}
EMPTY = ("", "[]", "null")


def write_report(trial: Trial, settings: Mapping[str, Mapping[str, str]], path: Path) -> None:
    """Write the page. `settings`: by contender, dotted key -> value. UserError: no such folder."""
    page = report(trial, settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"compare.out: can't write {path}: {error.strerror}") from error


def report(trial: Trial, settings: Mapping[str, Mapping[str, str]]) -> str:
    """The page as text."""
    title = f"Trial {trial.run.name}"
    look = looks(trial.record.entrants)
    style = files("outrider.compare").joinpath("report.css").read_text(encoding="utf-8")
    sections = (
        _head(title, trial),
        _decisions(trial, look),
        _conditions(trial),
        _releases(trial, look),
        _plots(trial, look),
        _settings(settings),
        _criteria(trial, look),
    )
    body = around("body", sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{tagged('title', title)}\n<style>\n{style}</style>\n</head>\n{body}\n</html>\n"
    )


def _head(title: str, trial: Trial) -> str:
    record = trial.record
    began = datetime.fromtimestamp(trial.run.started_s).astimezone()
    line = (
        f"{began:%d %B %Y, %H:%M %Z}: {record.num_cases} prompts of the {record.part} part of "
        f"{record.evaluation}, every release in turn on the same prompts, against plain decoding"
    )
    return around("header", (tagged("h1", title), tagged("p", line, "soft")))


def _decisions(trial: Trial, look: Mapping[str, Look]) -> str:
    cards = [_card(one, trial, look[one.name]) for one in trial.record.entrants if one.judgement]
    return around("section", (tagged("h2", "Decision"), around("div", cards, "cards")))


def _card(entrant: Entrant, trial: Trial, look: Look) -> str:
    judgement = entrant.judgement
    assert judgement is not None
    version = f", version {entrant.version}" if entrant.version is not None else ""
    return around(
        "div",
        (
            _titled(entrant.name, look),
            tagged("p", SAID[judgement.decision], "decision"),
            tagged("p", judgement.reason),
            *(tagged("p", line) for line in _speedups(entrant, trial)),
            tagged(
                "p",
                f"release {entrant.fingerprint[:SHORT]}{version}, "
                f"compared with {look_of(trial, entrant.baseline)}",
                "soft",
            ),
        ),
        f"card {judgement.decision.value}",
    )


def _titled(name: str, look: Look) -> str:
    return f"<h3>{swatch(look.colour, look.letter)} {tagged('span', name)}</h3>"


def look_of(trial: Trial, name: str) -> str:
    """`A plain`."""
    return f"{looks(trial.record.entrants)[name].letter} {name}"


def _speedups(entrant: Entrant, trial: Trial) -> Iterator[str]:
    for one in trial.record.figures:
        ratio = one.ratios.get(meters.SPEEDUP_RATIO.name)
        if one.contender == entrant.name and not one.group and ratio is not None:
            yield (
                f"{ratio.value:.2f} x plain at {one.in_flight} in flight "
                f"({ratio.low:.2f} to {ratio.high:.2f})"
            )


def _conditions(trial: Trial) -> str:
    record, every = trial.record, flatten(trial.record.conditions)
    told = {
        title: every[name].partition("#")[0]
        for name, title in TOLD.items()
        if every.get(name, "") not in EMPTY
    }
    told |= {
        "Prompts": f"{record.evaluation}, sha256 {record.evaluation_sha256[:SHORT]}",
        "Part": f"{record.part}, {record.num_cases} prompts",
        "Criteria": f"sha256 {record.criteria_sha256[:SHORT]}, written before the first request",
        "Run": trial.run.run_id,
    }
    rest = [(name, value) for name, value in every.items() if name not in TOLD]
    table = Table(headings=("condition", "value"), rows=rest, num_names=2)
    return around(
        "section",
        (
            tagged("h2", "Measured on"),
            definitions(told),
            details("All conditions", table.html()),
        ),
    )


def _releases(trial: Trial, look: Mapping[str, Look]) -> str:
    tables = (figure_table(trial.record, look), latency_table(trial.record, look))
    return around("section", (tagged("h2", "Releases"), *(table.html() for table in tables)))


def _plots(trial: Trial, look: Mapping[str, Look]) -> str:
    plots = [plot.html() for plot in all_plots(trial, look)]
    return around("section", (tagged("h2", "Plots"), around("div", plots, "plots")))


def all_plots(trial: Trial, look: Mapping[str, Look]) -> list[Plot]:
    """Those that there is data for, in the order of the page."""
    found = [
        throughput_plot(trial, look),
        acceptance_plot(trial, look),
        *group_plots(trial, look),
        *latency_plots(trial, look),
        length_plot(trial, look),
    ]
    return [plot for plot in found if plot is not None]


def _settings(settings: Mapping[str, Mapping[str, str]]) -> str:
    table = settings_table(settings)
    same = tagged("p", "No setting differs.")
    return around(
        "section",
        (
            tagged("h2", "What differs between the releases"),
            table.html() if table.rows else same,
        ),
    )


def _criteria(trial: Trial, look: Mapping[str, Look]) -> str:
    judged = [
        around(
            "div",
            (_titled(one.name, look[one.name]), finding_table(one.judgement.findings).html()),
        )
        for one in trial.record.entrants
        if one.judgement is not None
    ]
    bounds = Table(
        headings=("criterion", "bound"), rows=list(flatten(trial.record.criteria).items())
    )
    return around(
        "section",
        (
            tagged("h2", "Criteria and findings"),
            tagged(
                "p",
                "A criterion passes or fails where the whole interval lies on one side of its "
                "bound. Any failure rejects, all passed adopts, anything else is undecided.",
                "soft",
            ),
            around("div", judged, "plots"),
            details("The criteria as they were written down", bounds.html()),
        ),
    )
