"""Lineage: which release answers, where it came from, and what became of rollouts."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import TextBoxVariable
from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.board import board, choice
from boards.panels import NEUTRAL, Panel, figure, lines, states, table
from boards.query import level, state
from outrider.rollout.phase import ENDS, Phase
from outrider.telemetry import live_meters as live

R = 'release=~"$release"'
ARMS = (("stable", "#5794F2"), ("candidate", "#FF9830"), ("none", NEUTRAL))


def lineage() -> Dashboard:
    about = "Releases by their fingerprints, the server's MLflow run, and how rollouts ended."
    address = TextBoxVariable("mlflow").label("Address of MLflow").default_value("")
    variables = (choice("release", "Release", live.RELEASE_INFO), address)
    rows = {"Now": _now(), "Course": _course(), "Rollouts": _rollouts()}
    return board("lineage", about, variables, rows, since="now-7d")


def _now() -> Iterator[Panel]:
    columns = {"": level(live.RELEASE_INFO, "release, arm, fingerprint, health", R, "max")}
    names = {"release": "Release", "arm": "Arm", "fingerprint": "Fingerprint", "health": "Health"}
    about = f"{live.RELEASE_INFO.help} MLflow finds a release by the tag of its fingerprint."
    yield table("Releases", about, columns, names=names, width=14)
    columns = {"": level(live.GATEWAY_INFO, "version, model, run", how="max")}
    names = {"version": "Outrider", "model": "Model", "run": "MLflow run"}
    links = {"MLflow run": "${mlflow}/#/runs/${__value.raw}"}
    about = f"{live.GATEWAY_INFO.help} The run leads to the MLflow whose address stands above."
    yield table("Gateway", about, columns, names=names, links=links, width=10)


def _course() -> Iterator[Panel]:
    arms = state(live.RELEASE_INFO, "arm", ("stable", "candidate", ""), "release", R)
    about = "Which release was stable, and which one was tried."
    yield states("Arm of a release", about, (arms, "{{release}}"), ARMS, width=14)
    weights = level(live.ARM_WEIGHT, "release, arm", R)
    yield lines(
        "Planned share",
        live.ARM_WEIGHT,
        (weights, "{{arm}} {{release}}"),
        width=10,
        most=1,
        unit="percentunit",
    )


def _rollouts() -> Iterator[Panel]:
    over = "|".join(each.value for each in Phase if each in ENDS)
    for title, phases, colour in (
        ("Under way", f'phase!~"{over}"', NEUTRAL),
        ("Promoted", f'phase="{Phase.PROMOTED}"', "green"),
        ("Taken back", f'phase="{Phase.ROLLED_BACK}"', "red"),
        ("Aborted", f'phase="{Phase.ABORTED}"', "orange"),
        ("Failed", f'phase="{Phase.FAILED}"', "red"),
        ("Superseded", f'phase="{Phase.SUPERSEDED}"', NEUTRAL),
    ):
        counted = level(live.NUM_ROLLOUTS, where=phases)
        steps = ((None, NEUTRAL), (1.0, colour))
        yield figure(title, live.NUM_ROLLOUTS, counted, steps=steps, width=4)
    course = (level(live.NUM_ROLLOUTS, "phase", 'phase=~".+"', "max"), "{{phase}}")
    yield lines("Rollouts by phase", live.NUM_ROLLOUTS, course, width=24, stacked=True)
