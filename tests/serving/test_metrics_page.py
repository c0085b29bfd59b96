"""The page /metrics holds what replicas told and what the gateway saw."""

from __future__ import annotations

from dataclasses import replace

import httpx2 as httpx
from http_site import Site
from prometheus_client.parser import text_string_to_metric_families

from outrider.config.schema import EngineSettings, SamplingSettings
from outrider.core import Counters, Mode
from outrider.engine.draft_sums import DraftSums
from outrider.serving.candidate_counts import NAMES
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.messages import ReplicaStats
from outrider.serving.metrics_page import MetricsPage
from outrider.serving.request_entry import RequestEntry
from outrider.serving.service_recipe import ServiceRecipe
from outrider.telemetry.meters import METERS

CHAT = "/v1/chat/completions"

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


def test_what_an_engine_tells_of_rounds_positions_and_its_breaker_is_shown() -> None:
    told = replace(
        STATS,
        breaker_phase="half_open",
        num_open_rows=3,
        max_waiting=64,
        drafts=DraftSums(rounds_s=2.5, plain_rounds_s=4.0),
        counters=Counters(
            emitted=1,
            position_attempts=[4, 3],
            position_accepts=[3],
            rounds_by_length=[5, 0, 2],
        ),
    )
    found = samples(MetricsPage("m").render([told]))
    assert found["outrider_rounds_s_total", "main,r0"] == 2.5
    assert found["outrider_plain_rounds_s_total", "main,r0"] == 4.0
    assert found["outrider_num_open_rows", "main,r0"] == 3
    assert found["outrider_max_waiting", "main,r0"] == 64
    lengths = [found["outrider_rounds_by_draft_length_total", f"{k},main,r0"] for k in range(3)]
    assert lengths == [5, 0, 2]
    assert found["outrider_position_evaluated_tokens_total", "1,main,r0"] == 3
    assert found["outrider_position_accepted_tokens_total", "0,main,r0"] == 3
    assert found["outrider_position_accepted_tokens_total", "1,main,r0"] == 0
    phases = ("closed", "open", "half_open")
    assert [found["outrider_breaker_phase", f"{phase},main,r0"] for phase in phases] == [0, 0, 1]


def test_a_replica_that_has_done_nothing_counts_from_0_and_one_that_keeps_silent_does_not() -> None:
    fresh = ReplicaStats(release="main", replica="r0", mode=Mode.PLAIN, breaker_phase="closed")
    assert samples(MetricsPage("m").render([fresh]))["outrider_num_rounds_total", "main,r0"] == 0
    silent = samples(MetricsPage("m").render([replace(fresh, breaker_phase="")]))
    names = {name for name, _ in silent}
    assert "outrider_num_waiting" in names
    assert names.isdisjoint(
        {"outrider_num_rounds_total", "outrider_breaker_phase", "outrider_num_open_rows"}
    )


def test_every_name_on_the_page_of_a_gateway_is_the_catalogues_with_its_meaning() -> None:
    recipe = ServiceRecipe(
        settings=replace(Site.settings, fallback=True),
        engine=EngineSettings(),
        sampling=SamplingSettings(max_tokens=40),
        model="m",
        created=1,
    )
    with Site(recipe=recipe) as site:
        ask = {"messages": [{"role": "user", "content": "!"}]}
        for stream in (False, True):
            answer = httpx.post(site.url + CHAT, json={**ask, "stream": stream}, timeout=30)
            assert answer.status_code == 200
        page = httpx.get(site.url + "/metrics", timeout=30).text
    families = list(text_string_to_metric_families(page))
    assert len({family.name for family in families}) == len(families)
    ours = {family.name: family for family in families if family.name.startswith("outrider_")}
    shown = {meter.shown: meter for meter in METERS.values()}
    assert {name: family.documentation for name, family in ours.items()} == {
        name: shown[name].help for name in ours
    }
    empty = {name for name, family in ours.items() if not family.samples}
    trials = {f"outrider_{name}" for name in NAMES}  # nobody is tried
    assert empty == trials | {"outrider_num_retries"}
    assert sum(sample.value for sample in ours["outrider_num_routed"].samples) == 2
