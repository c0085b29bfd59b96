"""A real Prometheus beside a live service under load: whatever is asked for is there."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import asked
import httpx2 as httpx
import pytest
from busy_site import BusySite
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import BINARY, PrometheusServer

from outrider.telemetry.meters import METERS

pytestmark = pytest.mark.skipif(BINARY is None, reason="Prometheus is not installed")

PATIENCE_S = 45.0  # for a machine that does much else; a few seconds are enough
_VARIABLE = re.compile(r"\$(?!__|\d)\w+")


class Live(NamedTuple):
    prometheus: PrometheusServer
    url: str  # of the gateway


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with BusySite() as busy:
        target = busy.site.url.removeprefix("http://")
        with PrometheusServer(tmp_path_factory.mktemp("prometheus"), target) as prometheus:
            yield Live(prometheus, busy.site.url)


def filled(query: str) -> str:
    """As Grafana asks it, with everything chosen."""
    return _VARIABLE.sub(".*", query.replace("$__rate_interval", "5s"))


def without_data(prometheus: PrometheusServer, queries: Iterable[str]) -> set[str]:
    """Those that have no number yet."""
    return {
        each
        for each in queries
        if not any(math.isfinite(value) for value in prometheus.values(each))
    }


def have_data(prometheus: PrometheusServer, queries: Iterable[str]) -> None:
    until, missing = time.monotonic() + PATIENCE_S, set(queries)
    assert missing
    while missing := without_data(prometheus, missing):
        assert time.monotonic() < until, "\n".join(sorted(missing))
        time.sleep(0.3)


def test_every_panel_has_data(live: Live) -> None:
    have_data(
        live.prometheus,
        {filled(query) for name in asked.BOARDS for _, query in asked.queries(name)},
    )


def test_every_choice_of_a_board_has_values(live: Live) -> None:
    asked_for = {
        filled(variable["query"].removeprefix("label_values(").rpartition(",")[0])
        for name in asked.BOARDS
        for variable in asked.board(name)["templating"]["list"]
        if variable["type"] == "query"
    }
    have_data(live.prometheus, asked_for)


def test_every_recorded_figure_has_data(live: Live) -> None:
    recorded = {rule["record"] for rule in asked.rules("rules.yml")}
    have_data(live.prometheus, recorded)


def test_what_alerts_look_at_is_there_and_prometheus_can_evaluate_all(live: Live) -> None:
    looked_at = {one for rule in asked.rules("alerts.yml") for one in asked.selectors(rule["expr"])}
    have_data(live.prometheus, looked_at)
    for rule in live.prometheus.rules():
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]


def test_figures_say_what_happened(live: Live) -> None:
    """Failures and refusals are told apart, drafts pay, and the fallen guard is seen."""
    prometheus = live.prometheus
    for query in (
        "sum(release_arm:outrider_failure_ratio:rate5m) > 0",
        "release:outrider_refusal_ratio:rate5m > 0",
        'release:outrider_goodput_ratio:rate5m{release="main"} > 1',
        'outrider_guard_phase{release="next", phase="open"} == 1',
        'sum(outrider_num_retries_total{release="main"}) > 0',
        'sum(outrider_num_compared_total{release="next"}) > 0',
        'release:outrider_acceptance_ratio:rate5m{release="main"} > 0.9',
    ):
        have_data(prometheus, [query])


def test_every_family_of_the_page_is_of_the_catalogue_and_is_asked_for(live: Live) -> None:
    page = httpx.get(live.url + "/metrics", timeout=30).text
    families = {
        family.name: family.documentation
        for family in text_string_to_metric_families(page)
        if family.name.startswith("outrider_")
    }
    used = {
        f"outrider_{asked.meter_name(name)}"
        for text in asked.expressions()
        for name in asked.names(text)
    }
    assert len(families) > 60
    for name, documentation in families.items():
        assert METERS[name.removeprefix("outrider_")].help == documentation, name
    assert families.keys() <= used
