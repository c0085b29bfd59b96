"""Ray's metrics of an engine, read where a cluster's Prometheus reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from outrider.cluster.environment import prepare_environment
from outrider.core import Counters

prepare_environment()

import ray  # noqa: E402

from outrider.telemetry.export import ALL, RayExporter  # noqa: E402

Samples = dict[tuple[str, str], float]
PER_POSITION = "ray_vllm_spec_decode_num_accepted_tokens_per_pos_total"
OURS = ("release", "mode", "drafter", "position", "replica")


@pytest.fixture(scope="module")
def page(cluster: Any) -> Iterator[str]:
    """Address of the page of a Ray that shows every second what it was told."""
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    node = ray.nodes()[0]
    yield f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    ray.shutdown()


class Teller:
    """Tells from a process of its own: one that has met Ray before counts each time again.

    While it lives its gauges stay.
    """

    def replaced(self) -> None:
        first = RayExporter("main", "r1")
        total = Counters(
            drafted=9, accepted=5, emitted=11, num_draft_rounds=3, position_accepts=[3, 2]
        )
        ngram = Counters(drafted=9, accepted=5)
        first.export("speculative", {ALL: total, "ngram": ngram}, {"num_running": 2})
        first.export("speculative", {ALL: total, "ngram": ngram}, {"num_running": 2})  # nothing new
        total += Counters(emitted=4)
        first.export("plain", {ALL: total, "ngram": ngram}, {"num_running": 1})

        second = RayExporter("main", "r2")  # its engine begins at 0
        again = Counters(drafted=2, accepted=1, emitted=3, num_draft_rounds=1, position_accepts=[1])
        second.export("speculative", {ALL: again}, {"num_running": 7})

    def counts_on(self) -> None:
        exporter, counters = RayExporter("shared"), Counters()
        for _ in range(3):
            counters += Counters(emitted=2)
            exporter.export("plain", {ALL: counters}, {})
            exporter.export("plain", {ALL: Counters()}, {})  # its decode thread did not answer


@pytest.fixture(scope="module")
def teller(page: str) -> Any:
    return ray.remote(Teller).options(num_cpus=0).remote()


def samples(page: str) -> Samples:
    """By name and the values of our labels; Ray's own labels are left out."""
    with urlopen(page, timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        (sample.name, ",".join(sample.labels[name] for name in OURS if name in sample.labels)): (
            sample.value
        )
        for family in families
        for sample in family.samples
        if "outrider" in sample.name or "vllm" in sample.name
    }


def wait_for(page: str, wanted: Samples) -> None:
    until = time.monotonic() + 60
    while True:
        found = samples(page)
        shown = {key: found.get(key) for key in wanted}
        if shown == wanted:
            return
        assert time.monotonic() < until, shown
        time.sleep(0.25)


def test_counters_grow_by_release_mode_and_drafter_though_replicas_are_replaced(
    page: str, teller: Any
) -> None:
    ray.get(teller.replaced.remote())
    wait_for(
        page,
        {
            ("ray_outrider_num_drafted_tokens_total", "main,speculative"): 11,
            ("ray_outrider_num_emitted_tokens_total", "main,speculative"): 14,
            ("ray_outrider_num_emitted_tokens_total", "main,plain"): 4,
            ("ray_outrider_drafter_num_drafted_tokens_total", "main,speculative,ngram"): 9,
            ("ray_vllm_spec_decode_num_drafts_total", "main,speculative"): 4,
            ("ray_vllm_spec_decode_num_draft_tokens_total", "main,speculative"): 11,
            ("ray_vllm_spec_decode_num_accepted_tokens_total", "main,speculative"): 6,
            (PER_POSITION, "main,speculative,0"): 4,
            (PER_POSITION, "main,speculative,1"): 2,
            ("ray_outrider_num_running", "main,r1"): 1,
            ("ray_outrider_num_running", "main,r2"): 7,
        },
    )


def test_an_engine_that_counts_on_in_one_object_or_keeps_silent_is_told_once(
    page: str, teller: Any
) -> None:
    ray.get(teller.counts_on.remote())
    wait_for(page, {("ray_outrider_num_emitted_tokens_total", "shared,plain"): 6})
