"""The HTTP API as a client meets it: answers, streams, refusals, cancelling, keys."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import yaml
from http_site import Site

from outrider.config.folders import SHIPPED
from outrider.config.schema import ServingSettings
from outrider.core import Mode
from outrider.serving.keys import Keys
from outrider.serving.metrics_page import MetricsPage
from outrider.testing import AlphabetEngine

HELLO = [{"role": "user", "content": "hello"}]
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SLOW = AlphabetEngine(delay_s=0.02)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site_:
        yield site_


def post(site_: Site, path: str = CHAT, **body: Any) -> httpx.Response:
    body = {"messages": HELLO, **body} if path == CHAT else {"prompt": "hello", **body}
    return httpx.post(site_.url + path, json=body, timeout=30)


def events_of(answer: httpx.Response) -> list[Any]:
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    return [line[6:] if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]


def wait_until_idle(site_: Site) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        loads = [replica._decoder.load() for replica in site_.replicas]
        if all(load.is_idle and load.num_free_blocks == load.num_blocks for load in loads):
            return
        time.sleep(0.01)
    raise AssertionError(f"still at work: {loads}")


def test_a_chat_is_answered_with_its_usage_and_where_it_was_decoded(site: Site) -> None:
    answer = post(site, seed=1)
    assert answer.status_code == 200
    body = answer.json()
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "pqrstuvwxyz"}
    assert body["choices"][0]["finish_reason"] == "stop"
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (11, 12)
    speculation = usage["speculation"]
    assert speculation["mode"] == "speculative"
    assert speculation["drafted"] >= speculation["accepted"] >= 0
    assert usage["completion_tokens"] <= speculation["accepted"] + speculation["rounds"]
    assert answer.headers["x-outrider-release"] == "main"
    assert answer.headers["x-outrider-arm"] == "stable"
    assert answer.headers["x-outrider-mode"] == "speculative"
    assert answer.headers["x-outrider-replica"] == "r0"


def test_a_stream_says_what_the_whole_answer_says(site: Site) -> None:
    whole = post(site, ignore_eos=True, max_tokens=40).json()["choices"][0]["message"]["content"]
    answer = post(
        site, ignore_eos=True, max_tokens=40, stream=True, stream_options={"include_usage": True}
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, usage, done = events_of(answer)
    assert done == "[DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == whole
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert all(chunk["usage"] is None for chunk in chunks)
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 40
    assert len({chunk["id"] for chunk in [*chunks, usage]}) == 1


def test_a_stream_counts_its_tokens_as_they_come_where_asked(site: Site) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = post(site, ignore_eos=True, max_tokens=40, stream=True, stream_options=options)
    *chunks, usage, _ = events_of(answer)
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[-1] == usage["usage"]["completion_tokens"] == 40
    assert {chunk["usage"]["prompt_tokens"] for chunk in chunks} == {
        usage["usage"]["prompt_tokens"]
    }


def test_completions_take_many_prompts_and_choices(site: Site) -> None:
    body = post(site, TEXT, prompt=["x", [97, 98]], n=2, max_tokens=3).json()
    assert [choice["text"] for choice in body["choices"]] == ["yz", "yz", "cde", "cde"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert body["usage"]["prompt_tokens"] == 3


def test_choices_of_a_sampled_request_differ_and_its_seed_repeats_them(site: Site) -> None:
    asked = {"temperature": 5.0, "n": 3, "max_tokens": 12, "seed": 3}
    first, second = (post(site, TEXT, **asked).json()["choices"] for _ in range(2))
    assert first == second
    assert len({choice["text"] for choice in first}) == 3
    alone = post(site, TEXT, **{**asked, "n": 1}).json()["choices"]
    assert alone[0]["text"] == first[0]["text"]


def test_logprobs_have_the_shape_of_their_endpoint(site: Site) -> None:
    chat = post(site, logprobs=True, top_logprobs=2, max_tokens=2).json()["choices"][0]
    assert [token["token"] for token in chat["logprobs"]["content"]] == ["p", "q"]
    assert len(chat["logprobs"]["content"][0]["top_logprobs"]) == 2
    text = post(site, TEXT, logprobs=1, max_tokens=2).json()["choices"][0]["logprobs"]
    assert (text["tokens"], text["text_offset"]) == (["p", "q"], [0, 1])
    chunks = events_of(post(site, TEXT, logprobs=0, max_tokens=3, stream=True))[:-1]
    offsets = [o for c in chunks for o in (c["choices"][0]["logprobs"] or {})["text_offset"]]
    assert offsets == [0, 1, 2]


def test_a_stop_string_ends_the_text_before_it_in_a_stream_too(site: Site) -> None:
    assert post(site, stop=["tu"]).json()["choices"][0]["message"]["content"] == "pqrs"
    chunks = events_of(post(site, stop=["tu"], stream=True))[:-1]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == "pqrs"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_request_may_switch_speculation_off(site: Site) -> None:
    answer = post(site, speculation={"enabled": False}, max_tokens=60, ignore_eos=True)
    assert answer.json()["usage"]["speculation"] == {
        "rounds": 60,
        "drafted": 0,
        "accepted": 0,
        "mode": "plain",
    }
    assert answer.headers["x-outrider-mode"] == "plain"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"n": 99}, "n"),
        ({"stream_options": {"every": 1}, "stream": True}, "stream_options.every"),
        ({"response_format": {"type": "yaml"}}, "response_format"),
        ({"speculation": {"enabled": True, "k": 3}}, "speculation.k"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "a" * 5000}]}, "prompt"),
        ({"logit_bias": {"999": 1}}, "logit_bias"),
    ],
)
def test_what_is_not_supported_or_wrong_is_a_400_that_names_the_field(
    site: Site, body: dict[str, Any], param: str
) -> None:
    for stream in (False, True):
        answer = post(site, **{"stream": stream, **body})
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert error["param"] == param
        assert error["type"] == "invalid_request_error"
        assert param.split(".")[0] in error["message"]


def test_bodies_paths_and_methods_that_are_wrong_are_told_in_the_same_shape(site: Site) -> None:
    small = ServingSettings(max_request_bytes=100)
    url = site.url
    for answer, status in [
        (httpx.post(url + CHAT, content=b"{"), 400),
        (httpx.post(url + CHAT, content=b"[" * 100_000), 400),
        (httpx.post(url + CHAT, content=b"[]"), 400),
        (httpx.post(url + CHAT, json={"messages": HELLO, "model": "other"}), 404),
        (httpx.get(url + "/v1/nothing"), 404),
        (httpx.get(url + CHAT), 405),
        (httpx.get(url + "/v1/models/other"), 404),
    ]:
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    wrong = httpx.post(url + CHAT, content=b"{}", headers={"content-type": "text/plain"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_content_type")
    nan = b'{"messages": [{"role": "user", "content": "a"}], "temperature": NaN}'
    assert httpx.post(url + CHAT, content=nan).json()["error"]["code"] == "invalid_json"
    assert httpx.get(url + CHAT).headers["allow"] == "POST"
    with Site(settings=small) as other:
        assert post(other, user="u" * 200).status_code == 413
        assert post(other, user="u" * 20_000_000).status_code == 413


def test_the_models_own_name_is_listed_first() -> None:
    """Who takes the first one is part of rollouts; who names a release asks for that one."""
    with Site(service_fields={"model": "tiny"}) as other:
        models = httpx.get(other.url + "/v1/models").json()["data"]
    assert [each["id"] for each in models] == ["tiny", "main"]


def test_models_health_and_status(site: Site) -> None:
    names = [each["id"] for each in httpx.get(site.url + "/v1/models").json()["data"]]
    assert names == ["alphabet", "main"]
    assert httpx.get(site.url + "/v1/models/alphabet").json()["owned_by"] == "outrider"
    assert post(site, model="main").json()["model"] == "main"
    assert httpx.get(site.url + "/healthz").status_code == 200
    assert httpx.get(site.url + "/readyz").status_code == 200
    status = httpx.get(site.url + "/admin/status").json()
    assert status["replicas"][0]["num_running"] == 0


def test_metrics_show_what_replicas_and_gateway_counted() -> None:
    page = MetricsPage("alphabet")
    with Site(service_fields={"metrics": page.render, "log": page.see}) as site_:
        post(site_, max_tokens=4)
        post(site_, temperature="hot")  # no release hears of it
        answer = httpx.get(site_.url + "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        lines = answer.text.splitlines()
        assert any(
            line.startswith("outrider_num_emitted_tokens_total{") and line.endswith(" 4.0")
            for line in lines
        )
        assert any(
            line.startswith("outrider_num_requests_total{") and 'status="200"' in line
            for line in lines
        )
        assert any('error="turned_away"' in line and 'status="400"' in line for line in lines)


def test_metrics_come_in_time_while_a_replica_stands_still(tmp_path: Path) -> None:
    scrape = yaml.safe_load((SHIPPED.parent / "dashboards/prometheus/scrape.yml").read_text())
    patience_s = float(scrape["scrape_configs"][0]["scrape_timeout"].removesuffix("s"))
    page, wedge = MetricsPage("alphabet"), tmp_path / "wedge"
    engine = AlphabetEngine(wedge=wedge)
    fields: dict[str, object] = {"metrics": page.render, "log": page.see}
    with Site(engine=engine, service_fields=fields) as site_, ThreadPoolExecutor(1) as other:
        post(site_, max_tokens=4)
        wedge.touch()
        held = other.submit(post, site_, max_tokens=4)
        while not site_.fleet.desk.num_calls:
            time.sleep(0.01)
        time.sleep(0.3)  # its round has begun
        try:
            answer = httpx.get(site_.url + "/metrics", timeout=patience_s)
        finally:
            wedge.unlink()
        assert 'status="200"' in answer.text
        assert held.result().status_code == 200


def test_a_request_id_that_is_sane_comes_back(site: Site) -> None:
    for given, kept in [("mine-1", True), ("x y", False), ("", False)]:
        answer = httpx.post(
            site.url + CHAT, json={"messages": HELLO}, headers={"x-request-id": given}
        )
        assert (answer.headers["x-request-id"] == given) is kept
    wrong = httpx.post(site.url + CHAT, content=b"{", headers={"x-request-id": "mine-2"})
    assert wrong.headers["x-request-id"] == "mine-2"


def test_the_first_event_leaves_when_the_first_token_is_there() -> None:
    """P11: nothing waits for a batch; the rest is still to come."""
    with (
        Site(engine=AlphabetEngine(delay_s=0.05)) as site_,
        httpx.stream(
            "POST",
            site_.url + CHAT,
            json={"messages": HELLO, "stream": True, "speculation": {"enabled": False}},
        ) as answer,
    ):
        first = next(answer.iter_bytes())
        assert b'"content":"p"' in first
        assert site_.replicas[0]._decoder.load().num_running == 1


def test_cancelled_streams_leave_nothing_and_a_new_request_is_served() -> None:
    """P07: the sockets are closed after the first event."""
    with Site(engine=SLOW, settings=ServingSettings(max_queue=300)) as site_:
        body = json.dumps(
            {"messages": HELLO, "stream": True, "ignore_eos": True, "max_tokens": 2000}
        )
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        sockets = [socket.create_connection(("127.0.0.1", site_.port)) for _ in range(60)]
        for each in sockets:
            each.sendall(head.encode())
        assert b"200 OK" in sockets[0].recv(100)
        for each in sockets:
            each.close()
        wait_until_idle(site_)
        assert post(site_, max_tokens=3).json()["usage"]["completion_tokens"] == 3
        assert {entry.status for entry in site_.log} == {499, 200}


def test_a_client_that_leaves_before_its_answer_frees_its_row() -> None:
    with Site(engine=SLOW) as site_:
        with pytest.raises(httpx.TimeoutException):
            httpx.post(
                site_.url + CHAT,
                json={"messages": HELLO, "ignore_eos": True, "max_tokens": 2000},
                timeout=0.3,
            )
        wait_until_idle(site_)


def test_one_client_that_leaves_disturbs_no_other() -> None:
    """P09"""
    asked = {"messages": HELLO, "ignore_eos": True, "max_tokens": 40, "stream": True}
    with Site(engine=SLOW) as site_:
        texts: list[str] = []
        staying = threading.Thread(
            target=lambda: texts.append(httpx.post(site_.url + CHAT, json=asked, timeout=30).text)
        )
        staying.start()
        with httpx.stream("POST", site_.url + CHAT, json=asked) as leaving:
            next(leaving.iter_bytes())
        staying.join(timeout=30)
        assert texts[0].endswith("data: [DONE]\n\n")


def test_more_requests_than_there_is_room_for_are_a_429_that_says_when() -> None:
    """P08"""
    engine = AlphabetEngine(delay_s=0.05, max_rows=1)
    with Site(engine=engine, settings=ServingSettings(max_queue=1)) as site_:
        answers: list[httpx.Response] = []
        threads = [
            threading.Thread(target=lambda: answers.append(post(site_, max_tokens=5)))
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        refused = [answer for answer in answers if answer.status_code != 200]
        assert {answer.status_code for answer in refused} == {429}
        assert 1 <= len(answers) - len(refused) < 12
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["error"]["type"] == "rate_limit_error"


def test_a_request_that_takes_too_long_ends_with_a_clear_error() -> None:
    with Site(engine=SLOW, settings=ServingSettings(deadline_s=0.3)) as site_:
        asked = {"ignore_eos": True, "max_tokens": 2000}
        answer = post(site_, **asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline")
        *_, last = events_of(post(site_, stream=True, **asked))
        assert last["error"]["code"] == "deadline"
        wait_until_idle(site_)


def test_a_lost_replica_is_retried_before_the_first_token_and_told_behind_it() -> None:
    with Site(engine=SLOW, num_replicas=2) as site_:
        site_.release.lose("r0")
        answers = [post(site_, max_tokens=3) for _ in range(4)]
        assert {answer.headers["x-outrider-replica"] for answer in answers} == {"r1"}
        assert 1 <= sum(entry.num_retries for entry in site_.log) <= 4
        asked = {"messages": HELLO, "stream": True, "ignore_eos": True, "max_tokens": 500}
        with httpx.stream("POST", site_.url + CHAT, json=asked, timeout=30) as answer:
            parts = answer.iter_bytes()
            text = next(parts)
            site_.release.lose("r1")
            text += b"".join(parts)
        last = [line for line in text.split(b"\n\n") if line][-1]
        assert json.loads(last[6:])["error"]["code"] == "replica_lost"
        assert b"[DONE]" not in text


def test_an_engine_that_is_closed_is_an_error_in_a_stream_and_a_503_before_it() -> None:
    with Site(engine=SLOW, settings=ServingSettings(deadline_s=0.5)) as site_:
        asked = {"messages": HELLO, "stream": True, "ignore_eos": True, "max_tokens": 500}
        with httpx.stream("POST", site_.url + CHAT, json=asked, timeout=30) as answer:
            parts = answer.iter_bytes()
            text = next(parts)
            site_.replicas[0].close()
            text += b"".join(parts)
        assert b'"error"' in text
        assert b"[DONE]" not in text
        refused = post(site_)
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "server_error")


def test_mode_and_draft_length_change_while_requests_are_served() -> None:
    with Site() as site_:
        control = site_.url + "/admin/control"
        asked = {"max_tokens": 60, "ignore_eos": True}
        assert post(site_, **asked).json()["usage"]["speculation"]["drafted"] > 0
        assert httpx.put(control, json={"mode": "plain"}).json()["mode"] == "plain"
        plain = post(site_, **asked)
        assert plain.json()["usage"]["speculation"]["drafted"] == 0
        assert plain.headers["x-outrider-mode"] == Mode.PLAIN.value
        httpx.put(control, json={"mode": "speculative", "max_draft_length": 1})
        assert post(site_, **asked).json()["usage"]["speculation"]["drafted"] > 0
        assert httpx.put(control, json={"mode": "fast"}).status_code == 400
        assert httpx.put(control, json={"length": 1}).status_code == 400
        (replica,) = httpx.get(site_.url + "/admin/status").json()["replicas"]
        assert (replica["mode"], replica["max_draft_length"]) == ("speculative", 1)


def test_who_only_caps_the_draft_length_does_not_switch_speculation_on() -> None:
    with Site() as site_:
        control = site_.url + "/admin/control"
        httpx.put(control, json={"mode": "plain"})
        for body in ({"max_draft_length": 4}, {}):
            refused = httpx.put(control, json=body)
            assert refused.status_code == 400
            assert "mode is missing" in refused.json()["error"]["message"]
        (replica,) = httpx.get(site_.url + "/admin/status").json()["replicas"]
        assert replica["mode"] == "plain"


def test_several_choices_share_a_prompt_that_is_cached_once(site: Site) -> None:
    for _ in range(2):
        usage = post(site, n=3, max_tokens=2).json()["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        assert cached <= usage["prompt_tokens"]


def test_without_a_key_nothing_is_answered_but_health(tmp_path: Path) -> None:
    keys, admin = tmp_path / "keys", tmp_path / "admin"
    keys.write_text("# ours\nsecret-1\nsecret-2\n")
    admin.write_text("root\n")
    fields = {
        "keys": Keys.read(str(keys), "serving.keys_file"),
        "admin_keys": Keys.read(str(admin), "serving.admin_keys_file"),
    }
    with Site(service_fields=fields) as site_:
        url = site_.url

        def get(path: str, key: str | None) -> int:
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return httpx.get(url + path, headers=headers).status_code

        assert post(site_).status_code == 401
        assert post(site_).json()["error"]["code"] == "invalid_api_key"
        assert [get("/v1/models", key) for key in ("secret-1", "secret-2", "no", None)] == [
            200,
            200,
            401,
            401,
        ]
        assert [get("/admin/status", key) for key in ("root", "secret-1")] == [200, 401]
        assert [get(path, None) for path in ("/healthz", "/readyz")] == [200, 200]


def test_the_request_log_has_numbers_and_no_text(site: Site) -> None:
    site.log.clear()
    post(site, user="u", kind="greeting", max_tokens=4)
    entry = site.log[-1]
    assert (entry.status, entry.kind, entry.finish_reasons) == (200, "greeting", "length")
    assert (entry.num_prompt_tokens, entry.num_completion_tokens) == (11, 4)
    assert entry.first_token_s is not None
    assert (entry.prompt, entry.answer) == ("", "")
