"""What dashboards and rules ask Prometheus for, as they are committed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "dashboards"
BOARDS = ("bulk", "lineage", "rollout", "serving")
_NAME = re.compile(r"(?<![\w:])(?:[a-z_]+:)?outrider_\w+(?::\w+)?")
_SELECTOR = re.compile(rf"(?:{_NAME.pattern}|\bup\b)(?:\{{[^}}]*\}})?")
_SUFFIX = re.compile(r"_(?:total|bucket)$")


def board(name: str) -> dict[str, Any]:
    text = (FOLDER / "grafana" / f"{name}.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def panels(name: str) -> list[dict[str, Any]]:
    """Without the titles of rows."""
    return [each for each in board(name)["panels"] if each["type"] != "row"]


def queries(name: str) -> Iterator[tuple[str, str]]:
    """Title of the panel and what it asks, with Grafana's variables in it."""
    for panel in panels(name):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def rules(file: str) -> list[dict[str, Any]]:
    written = yaml.safe_load((FOLDER / "prometheus" / file).read_text(encoding="utf-8"))
    return [rule for group in written["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    """All of them."""
    asked = [rule["expr"] for file in ("rules.yml", "alerts.yml") for rule in rules(file)]
    return asked + [query for name in BOARDS for _, query in queries(name)]


def names(expression: str) -> set[str]:
    """Of our metrics, recorded ones too."""
    return set(_NAME.findall(expression))


def selectors(expression: str) -> set[str]:
    """Each series that is asked for, by itself."""
    return set(_SELECTOR.findall(expression))


def meter_name(metric: str) -> str:
    """`release:outrider_x_ratio:rate5m` and `outrider_x_total` are of the meters `x_...`."""
    shown = metric.split(":")[1] if ":" in metric else _SUFFIX.sub("", metric)
    return shown.removeprefix("outrider_")
