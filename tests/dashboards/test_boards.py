"""The Grafana dashboards: generated, complete, and nothing in them of one machine."""

from __future__ import annotations

import json
from typing import Any

import asked
import pytest

sdk = pytest.importorskip("grafana_foundation_sdk", reason="needs the development packages")

from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402
from grafana_foundation_sdk.cog.plugins import register_default_plugins  # noqa: E402
from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: E402

import generate  # noqa: E402

each_board = pytest.mark.parametrize("name", asked.BOARDS)


def test_the_committed_files_are_what_the_generator_writes() -> None:
    """Else: python dashboards/grafana/generate.py"""
    folder = asked.FOLDER / "grafana"
    assert {path.name for path in folder.glob("*.json")} == {
        f"{each}.json" for each in asked.BOARDS
    }
    for name, text in generate.texts().items():
        assert (folder / name).read_text(encoding="utf-8") == text, name


@each_board
def test_grafanas_own_schema_reads_all_of_it(name: str) -> None:
    """What its models don't know, they would lose."""
    register_default_plugins()
    written = asked.board(name)
    read = Dashboard.from_json(written)
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == written
    assert written["schemaVersion"] > 0


@each_board
def test_every_panel_has_a_place_of_its_own_on_a_full_grid(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    shown = asked.board(name)["panels"]
    for panel in shown:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len(taken) == 24 * (max(y for _, y in taken) + 1)
    assert [panel["id"] for panel in shown] == list(range(1, len(shown) + 1))


@each_board
def test_no_data_source_is_written_down(name: str) -> None:
    variables = asked.board(name)["templating"]["list"]
    assert (variables[0]["name"], variables[0]["type"]) == ("datasource", "datasource")
    sources = list(_sources(asked.board(name)))
    assert sources
    assert all(each == {"type": "prometheus", "uid": "${datasource}"} for each in sources)


@each_board
def test_every_panel_says_what_it_shows_and_in_which_unit(name: str) -> None:
    shown = asked.panels(name)
    titles = [panel["title"] for panel in shown if panel["type"] != "stat"]
    assert len(titles) == len(set(titles))
    for panel in shown:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


@each_board
def test_boards_lead_to_each_other_and_keep_the_time(name: str) -> None:
    written = asked.board(name)
    (link,) = written["links"]
    assert (link["type"], link["tags"], link["keepTime"]) == ("dashboards", ["outrider"], True)
    assert written["tags"] == ["outrider"]
    assert written["uid"] == f"outrider-{name}"


def _sources(node: Any) -> Any:
    """Every data source that is named anywhere."""
    if isinstance(node, dict):
        if "datasource" in node:
            yield node["datasource"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _sources(each)
