"""A live collapse of acceptance, as clients and operators meet it over HTTP."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx2 as httpx
from http_site import Site
from letters_engine import LettersEngine
from prometheus_client.parser import text_string_to_metric_families

from outrider.config.schema import ServingSettings
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.messages import Release
from outrider.serving.metrics_page import MetricsPage
from outrider.serving.watch import Watch

SETTINGS = ServingSettings(
    port=0,
    fallback_min_acceptance=0.3,
    fallback_window_s=0.4,
    fallback_min_drafted=40,
    fallback_wait_s=0.3,
    fallback_max_wait_s=1.0,
    fallback_probe_share=0.5,
)


class Clients:
    """Ask the same greedy question on and on, four at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[tuple[int, str]] = []
        self.drafted: list[int] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(4)]

    def _ask(self) -> None:
        body = {"prompt": "a", "max_tokens": 80, "ignore_eos": True, "temperature": 0}
        with httpx.Client(timeout=30) as client:
            while not self._is_over.is_set():
                answer = client.post(self.url + "/v1/completions", json=body)
                told = answer.json()
                self.answers.append((answer.status_code, told["choices"][0]["text"]))
                self.drafted.append(told["usage"]["speculation"]["drafted"])

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout=30)


def status(url: str) -> dict[str, Any]:
    told: dict[str, Any] = httpx.get(url + "/admin/status", timeout=30).json()
    return told


def wait_for(url: str, phase: str) -> dict[str, Any]:
    until = time.monotonic() + 30
    while True:
        guard = status(url).get("guard", {}).get("main", {})
        if guard.get("phase") == phase:
            return dict(guard)
        assert time.monotonic() < until, guard
        time.sleep(0.02)


def metrics(url: str) -> dict[tuple[str, str], float]:
    page = httpx.get(url + "/metrics", timeout=30).text
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_a_release_falls_back_probes_and_recovers_and_no_client_sees_it() -> None:
    knows, releases = threading.Event(), dict[str, Release]()
    knows.set()
    watch = Watch(lambda: releases, SETTINGS, period_s=0.05)
    page = MetricsPage("alphabet", [GuardMetrics(watch.told)])
    fields = {"watch": watch, "metrics": page.render}
    engine = LettersEngine(knows=knows.is_set)
    with Site(engine=engine, settings=SETTINGS, num_replicas=2, service_fields=fields) as site_:
        releases["main"] = site_.release
        with Clients(site_.url) as clients:
            wait_for(site_.url, "closed")
            time.sleep(0.5)
            assert watch.transitions() == []

            knows.clear()
            fallen = wait_for(site_.url, "open")
            assert "were accepted" in fallen["reason"]
            told = status(site_.url)["replicas"]
            assert [each["mode"] for each in told] == ["plain", "plain"]  # and both are there
            until = time.monotonic() + 30
            while 0 not in clients.drafted:
                assert time.monotonic() < until
                time.sleep(0.02)

            knows.set()
            wait_for(site_.url, "closed")
            told = status(site_.url)["replicas"]
            assert [each["mode"] for each in told] == ["speculative", "speculative"]
            before = len(clients.drafted)
            while len(clients.drafted) < before + 8:
                time.sleep(0.01)
        phases = [each.phase.value for each in watch.transitions()]
        shown = metrics(site_.url)
    assert shown["outrider_guard_phase", "closed,main"] == 1
    assert (phases[0], phases[-1]) == ("open", "closed")
    assert (
        phases.count("probing")
        == phases.count("open")
        == shown["outrider_guard_transitions_total", "open,main"]
    )
    assert set(clients.answers) == {(200, clients.answers[0][1])}
    assert len(clients.answers[0][1]) == 80
    assert min(clients.drafted[-4:]) > 20
