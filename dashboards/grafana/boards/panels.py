"""The kinds of panels, dressed alike: a unit and a description out of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import common as build
from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions
from grafana_foundation_sdk.builders.heatmap import Panel as Heatmap
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from outrider.telemetry.meter import Meter

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
GOOD, WARN, BAD, NEUTRAL = "green", "orange", "red", "text"
COLOURS = {"stable": "#5794F2", "candidate": "#FF9830", "plain": "#9E9E9E"}
DASHED = ("plain", "planned", "at most")  # what is not so, but would be or may be
UNITS = {"seconds": "s", "tokens/second": "suffix: tok/s"}

Panel = TimeSeries | Stat | StateTimeline | Heatmap | Table
P = TypeVar("P", TimeSeries, Stat, StateTimeline, Heatmap, Table)
Line = tuple[str, str]  # query, legend
Steps = Sequence[tuple[float | None, str]]  # from which value, colour; the first from nothing
States = Sequence[tuple[str, str]]  # word, colour; by its place


def lines(
    title: str,
    about: Meter | str,
    *targets: Line,
    unit: str = "",
    width: int = 8,
    stacked: bool = False,
    most: float | None = None,
) -> TimeSeries:
    """What goes up and down in time."""
    panel = _dressed(TimeSeries(), title, about, unit, width, 8)
    panel.min(0).fill_opacity(25 if stacked else 8).line_width(2).show_points(
        common.VisibilityMode.NEVER
    )
    panel.legend(
        build.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
    )
    panel.tooltip(build.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    panel.color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    if stacked:
        panel.stacking(build.StackingConfig().mode(common.StackingMode.NORMAL))
    if most is not None:
        panel.max(most)
    for word in _coloured(targets):
        panel.override_by_regexp(f"/{word}/", [_fixed(COLOURS[word])])
    for word in DASHED:
        if any(word in legend for _, legend in targets):
            panel.override_by_regexp(f"/{word}/", [_dashed()])
    return _asking(panel, targets)


def figure(
    title: str,
    about: Meter | str,
    query: str,
    *,
    unit: str = "",
    steps: Steps = ((None, NEUTRAL),),
    words: States = (),
    legend: str = "",
    width: int = 3,
) -> Stat:
    """One number, large, over its course."""
    panel = _dressed(Stat(), title, about, unit, width, 4)
    panel.thresholds(_thresholds(steps)).color_mode(common.BigValueColorMode.VALUE)
    panel.graph_mode(common.BigValueGraphMode.NONE if words else common.BigValueGraphMode.AREA)
    panel.reduce_options(build.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.no_value("nothing yet")
    if words:
        panel.mappings([_mapping(words)])
    return _asking(panel, [(query, legend)])


def states(
    title: str, about: Meter | str, target: Line, words: States, *, width: int = 12
) -> StateTimeline:
    """Which state held when. A query's value is the state's place among `words`."""
    panel = _dressed(StateTimeline(), title, about, "none", width, 8)
    panel.mappings([_mapping(words)]).merge_values(True).line_width(0).fill_opacity(70)
    panel.color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    panel.thresholds(_thresholds([(None, NEUTRAL)]))
    return _asking(panel, [target])


def heat(
    title: str, about: Meter | str, target: Line, *, unit: str = "short", width: int = 8
) -> Heatmap:
    """How a distribution moves in time: a line of cells for each series."""
    panel = _dressed(Heatmap(), title, about, unit, width, 8)
    colours = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(64)
    panel.calculate(False).color(colours).hide_from(build.HideSeriesConfig())
    return _asking(panel, [target])


def table(
    title: str,
    about: Meter | str,
    columns: Mapping[str, str],
    *,
    names: Mapping[str, str],
    words: Mapping[str, States] | None = None,
    links: Mapping[str, str] | None = None,
    width: int = 24,
    height: int = 8,
) -> Table:
    """Now, a row for each set of labels. `columns`: query of each value, by the column's title;
    `names`: titles of labels; `words`: states of the values in a column; `links`: where a cell of a
    column leads.
    """
    panel = _dressed(Table(), title, about, "none", width, height)
    panel.decimals(3).align(common.FieldTextAlignment.AUTO)
    titles = {
        f"Value #{letter}": each for letter, each in zip(ascii_uppercase, columns, strict=False)
    }
    if len(columns) == 1:
        titles["Value"] = next(iter(columns))
    hidden = {"Time": True, **{shown: True for shown, each in titles.items() if not each}}
    panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    renamed = {**names, **{shown: each for shown, each in titles.items() if each}}
    order = {each: place for place, each in enumerate(renamed)}
    options = {"excludeByName": hidden, "renameByName": renamed, "indexByName": order}
    panel.with_transformation(DataTransformerConfig(id_val="organize", options=options))
    for column, held in (words or {}).items():
        panel.override_by_name(column, [*_as_words(held)])
    for column, url in (links or {}).items():
        link = {"title": column, "url": url, "targetBlank": True}
        panel.override_by_name(column, [DynamicConfigValue("links", [link])])
    queries = list(columns.values())
    return _asking(panel, [(each, "") for each in queries], is_table=True)


def _dressed(panel: P, title: str, about: Meter | str, unit: str, width: int, height: int) -> P:
    panel.title(title).datasource(SOURCE).span(width).height(height)
    panel.description(about.help if isinstance(about, Meter) else about)
    panel.unit(unit or (_unit(about) if isinstance(about, Meter) else "short"))
    return panel


def _unit(meter: Meter) -> str:
    if meter.unit == "1":
        return "percentunit" if meter.name.endswith(("_ratio", "_weight")) else "none"
    return UNITS.get(meter.unit, "short")


def _asking(panel: P, targets: Sequence[Line], *, is_table: bool = False) -> P:
    for letter, (query, legend) in zip(ascii_uppercase, targets, strict=False):
        target = Dataquery().ref_id(letter).expr(query).datasource(SOURCE)
        if is_table:
            target.instant().format(PromQueryFormat.TABLE)
        else:
            target.range().format(PromQueryFormat.TIME_SERIES)
        if legend:
            target.legend_format(legend)
        panel.with_target(target)
    return panel


def _coloured(targets: Sequence[Line]) -> list[str]:
    """The words of `COLOURS` that may stand in a legend."""
    legends = " ".join(legend for _, legend in targets)
    has_arm = "{{arm}}" in legends
    return [each for each in COLOURS if each in legends or (has_arm and each != "plain")]


def _fixed(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def _dashed() -> DynamicConfigValue:
    return DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})


def _thresholds(steps: Steps) -> ThresholdsConfig:
    made = [Threshold(value=value, color=colour) for value, colour in steps]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(made)


def _mapping(words: States) -> ValueMapping:
    return ValueMap(
        {
            str(place): ValueMappingResult(text=word, color=colour, index=place)
            for place, (word, colour) in enumerate(words)
        }
    )


def _as_words(words: States) -> list[DynamicConfigValue]:
    cell = {"type": "color-text"}
    return [
        DynamicConfigValue("mappings", [_mapping(words).to_json()]),
        DynamicConfigValue("custom.cellOptions", cell),
    ]
