"""Dashboards and alerts ask for figures that the gateway's page shows, by labels that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from outrider.core import Counters, Mode
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.messages import ReplicaStats
from outrider.serving.metrics_page import MetricsPage
from outrider.serving.request_entry import RequestEntry

FOLDER = Path(__file__).resolve().parents[1] / "dashboards"
PROMETHEUS = {"up": {"job", "instance"}}  # what Prometheus itself says of a page
NAME = re.compile(r"\b(?:outrider_\w+|vllm:\w+|up)\b")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
GROUPING = re.compile(r"\bby \(([^)]*)\)")


def shown() -> dict[str, set[str]]:
    """Every sample of a page on which everything has happened once, and its labels."""
    guard = {"phase": "open", "transitions": {"closed": 0, "open": 1, "probing": 0}}
    page = MetricsPage("m", [GuardMetrics(lambda: {"main": guard})])
    for status in (200, 429):
        page.see(
            RequestEntry(
                at_s=0.0,
                request_id="r",
                endpoint="chat",
                release="main",
                arm="stable",
                status=status,
                stream=True,
                num_completion_tokens=2,
                queue_s=0.0,
                first_token_s=0.1,
                total_s=0.2,
                num_retries=1,
            )
        )
    stats = ReplicaStats(
        release="main",
        replica="r",
        mode=Mode.SPECULATIVE,
        counters=Counters(emitted=1, position_accepts=[1]),
        by_drafter={"ngram": Counters(drafted=1)},
    )
    families = text_string_to_metric_families(page.render([stats]).decode())
    samples = {each.name: set(each.labels) for family in families for each in family.samples}
    return PROMETHEUS | samples


def rules() -> list[dict[str, Any]]:
    written = yaml.safe_load((FOLDER / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in written["groups"] for rule in group["rules"]]


def dashboards() -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in (FOLDER / "grafana").glob("*.json")
    ]


def expressions() -> Iterator[str]:
    for rule in rules():
        yield rule["expr"]
    for dashboard in dashboards():
        yield from (each["query"] for each in dashboard["templating"]["list"][1:])
        for panel in dashboard["panels"]:
            yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_what_is_asked_for_is_on_the_page(expression: str) -> None:
    samples = shown()
    names = set(NAME.findall(expression))
    assert names
    assert names <= samples.keys()
    labels = set(MATCHER.findall(expression))
    for group in GROUPING.findall(expression):
        labels |= set(group.split(", "))
    for name in names - PROMETHEUS.keys():
        assert labels - {"job"} <= samples[name], name
    assert expression.count("(") == expression.count(")")


def test_an_alert_says_what_is_wrong_and_how_urgent_it_is() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 0
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}, rule["alert"]
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]


def test_a_panel_has_a_place_of_its_own() -> None:
    for dashboard in dashboards():
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
        assert len(places) == len(set(places)) > 0
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_the_page_is_looked_for_where_serving_puts_it() -> None:
    from outrider.config.schema import ServingSettings

    written = yaml.safe_load((FOLDER / "prometheus" / "scrape.yml").read_text(encoding="utf-8"))
    (job,) = written["scrape_configs"]
    default = ServingSettings()
    assert job["static_configs"][0]["targets"] == [f"{default.host}:{default.port}"]
    assert {"job": job["job_name"]} == {"job": "outrider"}
