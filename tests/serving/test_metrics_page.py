"""The page /metrics holds what replicas told and what the gateway saw."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from outrider.core import Counters, Mode
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.messages import ReplicaStats
from outrider.serving.metrics_page import MetricsPage
from outrider.serving.request_entry import RequestEntry

STATS = ReplicaStats(
    release="main",
    replica="r0",
    mode=Mode.SPECULATIVE,
    num_running=2,
    counters=Counters(drafted=9, evaluated=7, accepted=5, emitted=11, position_accepts=[3, 2]),
    by_drafter={"ngram": Counters(drafted=9, accepted=5)},
)


def samples(page: bytes) -> dict[tuple[str, str], float]:
    """By name and the labels' values, in the order of the labels' names."""
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_counters_are_there_under_our_names_and_vllms() -> None:
    found = samples(MetricsPage("m").render([STATS]))
    assert found["outrider_num_drafted_tokens_total", "main,r0"] == 9
    assert found["outrider_drafter_num_accepted_tokens_total", "ngram,main,r0"] == 5
    assert found["outrider_num_running", "main,r0"] == 2
    assert found["vllm:spec_decode_num_accepted_tokens_total", "r0,m"] == 5
    assert found["vllm:spec_decode_num_accepted_tokens_per_pos_total", "r0,m,1"] == 2
    assert found["vllm:num_requests_running", "r0,m"] == 2
    assert found["outrider_replica_mode", "speculative,main,r0"] == 1


def test_totals_stay_one_series_when_the_mode_changes_or_the_decode_thread_keeps_silent() -> None:
    page = MetricsPage("m")
    before = samples(page.render([STATS]))
    plain = samples(page.render([replace(STATS, mode=Mode.PLAIN)]))
    silent = samples(page.render([replace(STATS, counters=Counters(), by_drafter={})]))
    totals = {key: value for key, value in before.items() if key[0].endswith("_total")}
    assert totals.items() <= plain.items()
    assert not totals.keys() & silent.keys()
    assert silent["outrider_num_running", "main,r0"] == 2


def test_requests_are_counted_by_status_and_their_times_kept() -> None:
    page = MetricsPage("m")
    entry = RequestEntry(
        at_s=0.0,
        request_id="r",
        endpoint="chat",
        release="main",
        arm="stable",
        mode="plain",
        stream=True,
        num_completion_tokens=11,
        queue_s=0.01,
        first_token_s=0.03,
        total_s=1.03,
        num_retries=2,
    )
    page.see(entry)
    found = samples(page.render([]))
    assert found["outrider_num_requests_total", "stable,,main,200"] == 1
    assert found["outrider_served_num_emitted_tokens_total", "stable,plain,main"] == 11
    assert found["outrider_num_retries_total", "stable,main"] == 2
    assert found["outrider_queue_s_sum", "stable,plain,main"] == 0.01
    assert found["outrider_first_token_s_sum", "stable,plain,main"] == 0.03
    assert round(found["outrider_inter_token_s_sum", "stable,plain,main"], 9) == 0.1


def test_where_the_guard_of_a_release_stands_is_shown() -> None:
    guard = {"phase": "probing", "transitions": {"closed": 1, "open": 3, "probing": 3}}
    found = samples(MetricsPage("m", [GuardMetrics(lambda: {"main": guard})]).render([]))
    phases = ("closed", "open", "probing")
    assert [found["outrider_guard_phase", f"{phase},main"] for phase in phases] == [0, 0, 1]
    moves = [found["outrider_guard_transitions_total", f"{phase},main"] for phase in phases]
    assert moves == [1, 3, 3]
