"""A release on a real Ray Serve: cancelling, a full queue, a wedged and a killed replica, drain."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import ray
from ray import serve

from outrider.cluster.environment import prepare_environment
from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import SamplingParams
from outrider.serving.api import Service
from outrider.serving.application import release_application
from outrider.serving.desk import Desk
from outrider.serving.gateway import gateway_application
from outrider.serving.release import application_name
from outrider.testing import AlphabetEngine

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
LONG = {"messages": HELLO, "ignore_eos": True, "max_tokens": 1500}


@dataclass(frozen=True)
class MakeService:
    """What the gateway builds in its own process."""

    settings: ServingSettings

    def __call__(self, desk: Desk) -> Service:
        return Service(
            desk=desk,
            settings=self.settings,
            model="alphabet",
            fingerprint="fp",
            defaults=SamplingParams(max_tokens=64),
            created=1,
        )


@dataclass
class Stand:
    """A running gateway and release."""

    url: str
    port: int
    wedge: Path

    def post(self, **body: Any) -> httpx.Response:
        return httpx.post(self.url + CHAT, json={"messages": HELLO, **body}, timeout=60)

    def replicas(self) -> list[dict[str, Any]]:
        told = httpx.get(self.url + "/admin/status", timeout=30).json()["replicas"]
        return [dict(each) for each in told]

    def wait(self, what: Callable[[list[dict[str, Any]]], bool], timeout_s: float = 60.0) -> None:
        until = time.monotonic() + timeout_s
        while not what(told := self.replicas()):
            assert time.monotonic() < until, told
            time.sleep(0.1)


def is_idle(told: list[dict[str, Any]]) -> bool:
    busy = [each["num_running"] + each["num_waiting"] for each in told]
    return sum(busy) == 0 and all(each["num_free_blocks"] == each["num_blocks"] for each in told)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    prepare_environment()
    port, wedge = free_port(), tmp_path_factory.mktemp("serve") / "wedge"
    settings = ServingSettings(
        port=port, num_replicas=2, health_period_s=1.0, stall_s=2.0, deadline_s=30.0, max_queue=24
    )
    ray.init(
        "local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    serve.start(proxy_location="Disabled")
    engine = AlphabetEngine(delay_s=0.01, max_rows=4, wedge=wedge)
    release = release_application(engine, settings, EngineSettings(max_rows=4), num_cpus=1)
    serve.run(release, name=application_name("main"), route_prefix=None)
    serve.run(
        gateway_application(MakeService(settings), settings, listens=True),
        name="gateway",
        route_prefix=None,
    )
    yield Stand(f"http://127.0.0.1:{port}", port, wedge)
    serve.shutdown()
    ray.shutdown()


def test_a_stream_through_serve_is_not_held_back(stand: Stand) -> None:
    """P11"""
    asked = {**LONG, "max_tokens": 60, "stream": True, "speculation": {"enabled": False}}
    with httpx.stream("POST", stand.url + CHAT, json=asked, timeout=30) as answer:
        parts = answer.iter_bytes()
        assert b'"content":"p"' in next(parts)
        assert sum(each["num_running"] for each in stand.replicas()) == 1
        assert b"".join(parts).endswith(b"data: [DONE]\n\n")


def test_closed_sockets_and_clients_that_time_out_free_their_rows(stand: Stand) -> None:
    """P07"""
    body = json.dumps({**LONG, "stream": True})
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    sockets = [socket.create_connection(("127.0.0.1", stand.port)) for _ in range(30)]
    for each in sockets:
        each.sendall(head.encode())
    assert b"200 OK" in sockets[0].recv(100)
    with pytest.raises(httpx.TimeoutException):
        httpx.post(stand.url + CHAT, json=LONG, timeout=0.5)
    for each in sockets:
        each.close()
    stand.wait(is_idle)
    assert stand.post(max_tokens=3).status_code == 200


def test_a_full_queue_is_a_429(stand: Stand) -> None:
    """P08"""
    answers: list[httpx.Response] = []
    asked = {"ignore_eos": True, "max_tokens": 60}
    threads = [
        threading.Thread(target=lambda: answers.append(stand.post(**asked))) for _ in range(90)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1


def test_a_mode_reaches_every_replica_and_those_that_come_later(stand: Stand) -> None:
    httpx.put(stand.url + "/admin/control", json={"mode": "plain"}, timeout=30)
    assert {each["mode"] for each in stand.replicas()} == {"plain"}
    before = {each["replica"] for each in stand.replicas()}
    os.kill(stand.replicas()[0]["pid"], signal.SIGKILL)
    stand.wait(lambda told: len(told) == 2 and {each["replica"] for each in told} != before)
    for _ in range(8):
        assert stand.post().json()["usage"]["speculation"]["mode"] == "plain"
    httpx.put(stand.url + "/admin/control", json={"mode": "speculative"}, timeout=30)
    assert {each["mode"] for each in stand.replicas()} == {"speculative"}


def test_a_killed_replica_loses_no_request_that_had_not_begun(stand: Stand) -> None:
    asked = {"ignore_eos": True, "max_tokens": 100}
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(stand.post(**asked))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    with httpx.stream("POST", stand.url + CHAT, json={**LONG, "stream": True}) as stream:
        parts = stream.iter_bytes()
        next(parts)
        serving = stream.headers["x-outrider-replica"]
        pid = next(each["pid"] for each in stand.replicas() if each["replica"] == serving)
        os.kill(pid, signal.SIGKILL)
        text = b"".join(parts)
    assert json.loads(text.split(b"\n\n")[-2][6:])["error"]["code"] == "replica_lost"
    for thread in threads:
        thread.join(timeout=120)
    assert [answer.status_code for answer in answers] == [200] * 8
    stand.wait(lambda told: len(told) == 2)


def test_a_wedged_replica_is_replaced(stand: Stand) -> None:
    """P10: only those with work are; the file wedges both once each has a request."""
    before = {each["replica"] for each in stand.replicas()}
    stand.wedge.touch()
    try:
        asking = threading.Thread(target=lambda: stand.post(max_tokens=3))
        asking.start()
        stand.wait(lambda told: bool(told) and {each["replica"] for each in told} != before)
    finally:
        stand.wedge.unlink()
    asking.join(timeout=60)
    stand.wait(lambda told: len(told) == 2 and is_idle(told))
    assert stand.post(max_tokens=3).status_code == 200


def test_a_request_id_is_written_once(stand: Stand) -> None:
    answer = httpx.post(
        stand.url + CHAT, json={"messages": HELLO}, headers={"x-request-id": "mine"}, timeout=30
    )
    assert answer.headers.get_list("x-request-id") == ["mine"]


def test_counters_by_release_mode_and_drafter_are_among_rays_own_metrics(stand: Stand) -> None:
    stand.post(ignore_eos=True, max_tokens=60)
    node = ray.nodes()[0]
    page = f"http://127.0.0.1:{node['MetricsExportPort']}"
    until = time.monotonic() + 60
    wanted = {
        "ray_outrider_num_drafted_tokens_total",
        "ray_outrider_drafter_num_drafted_tokens_total",
    }
    while True:
        lines = httpx.get(page, timeout=30).text.splitlines()
        shown = [line for line in lines if line.partition("{")[0] in wanted]
        if {line.partition("{")[0] for line in shown} == wanted:
            break
        assert time.monotonic() < until, shown
        time.sleep(0.5)
    assert any('drafter="ngram"' in line for line in shown)
    assert all('release="main"' in line and 'mode="' in line for line in shown)


def test_a_killed_gateway_listens_again(stand: Stand) -> None:
    named = ray.util.list_named_actors(all_namespaces=True)
    (gateway,) = (each for each in named if "gateway#gateway" in each["name"])
    ray.kill(ray.get_actor(**gateway))
    until = time.monotonic() + 60
    while not answers(stand):
        assert time.monotonic() < until
        time.sleep(0.2)


def answers(stand: Stand) -> bool:
    try:
        return stand.post(max_tokens=4).status_code == 200
    except httpx.HTTPError:
        return False
