"""A dashboard: what all of them have, and rows of panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

from boards.panels import SOURCE, Panel
from outrider.telemetry.meter import Meter

TAG = "outrider"
Rows = Mapping[str, Iterable[Panel]]  # by title; panels side by side, 24 wide


def board(
    name: str,
    about: str,
    variables: Iterable[build.QueryVariable | build.TextBoxVariable],
    rows: Rows,
    *,
    since: str,
) -> model.Dashboard:
    """`since`: the view that it opens with, from then to now."""
    made = build.Dashboard(f"Outrider: {name}").uid(f"outrider-{name}").description(about)
    made.tags([TAG]).editable().refresh("10s").time(since, "now").timezone("browser")
    made.tooltip(model.DashboardCursorSync.CROSSHAIR).version(1)
    made.link(_others()).with_variable(
        build.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    )
    for variable in variables:
        made.with_variable(variable)
    for title, panels in rows.items():
        made.with_row(build.Row(title))
        for panel in panels:
            made.with_panel(panel)
    return _numbered(made.build())


def choice(name: str, title: str, meter: Meter, where: str = "") -> build.QueryVariable:
    """A variable: the values that a label has had on a meter; all of them at first."""
    asked = f"{meter.shown}{{{where}}}" if where else meter.shown
    variable = build.QueryVariable(name).label(title).datasource(SOURCE)
    variable.query(f"label_values({asked}, {name})").sort(model.VariableSort.ALPHABETICAL_ASC)
    variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).multi(True)
    return variable.include_all(True).current(model.VariableOption(text="All", value="$__all"))


def _others() -> build.DashboardLink:
    link = build.DashboardLink("Outrider").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.keep_time(True).include_vars(True)


def _numbered(made: model.Dashboard) -> model.Dashboard:
    for number, panel in enumerate(made.panels or [], start=1):
        panel.id_val = number
    return made
