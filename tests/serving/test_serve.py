"""A release on a real Ray Serve: cancelling, a full queue, a wedged and a killed replica, drain."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import ray
from ray import serve

from outrider.cluster.environment import prepare_environment
from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import Mode, SamplingParams, UserError
from outrider.serving.api import Service
from outrider.serving.application import release_application
from outrider.serving.fleet import Fleet
from outrider.serving.gateway import First, gateway_application
from outrider.serving.kept import Card
from outrider.serving.messages import Control, Pulse
from outrider.serving.release import application_name, open_release
from outrider.serving.watch import Watch
from outrider.testing import AlphabetEngine

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
LONG = {"messages": HELLO, "ignore_eos": True, "max_tokens": 1500}


@dataclass(frozen=True)
class MakeService:
    """What the gateway builds in its own process."""

    settings: ServingSettings

    def __call__(self, fleet: Fleet) -> Service:
        return Service(
            fleet=fleet,
            settings=self.settings,
            model="alphabet",
            defaults=SamplingParams(max_tokens=64),
            created=1,
        )


def candidate(settings: Mapping[str, Any], name: str, cpus: int) -> Any:
    """What `ServeDeployer` starts."""
    if "last" not in settings:
        raise UserError("last: which letter?")
    engine = AlphabetEngine(max_rows=4, last=settings["last"])
    serving = ServingSettings(name=name, deadline_s=30.0, health_period_s=1.0)
    return release_application(engine, serving, EngineSettings(max_rows=4), num_cpus=cpus)


@dataclass
class Stand:
    """A running gateway and release."""

    url: str
    port: int
    wedge: Path

    def post(self, **body: Any) -> httpx.Response:
        return httpx.post(self.url + CHAT, json={"messages": HELLO, **body}, timeout=60)

    def put(self, path: str, body: dict[str, Any]) -> None:
        answer = httpx.put(f"{self.url}/admin/{path}", json=body, timeout=30)
        assert answer.status_code in (200, 202), answer.text

    def status(self) -> dict[str, Any]:
        return dict(httpx.get(self.url + "/admin/status", timeout=30).json())

    def replicas(self) -> list[dict[str, Any]]:
        return [dict(each) for each in self.status()["replicas"]]

    def wait_for(self, release: str, health: str) -> dict[str, Any]:
        until = time.monotonic() + 60
        while (told := self.status()["releases"].get(release, {})).get("health") != health:
            assert time.monotonic() < until, told
            time.sleep(0.2)
        return dict(told)

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
def stand(tmp_path_factory: pytest.TempPathFactory, cluster: Any) -> Iterator[Stand]:
    prepare_environment()
    port, wedge = free_port(), tmp_path_factory.mktemp("serve") / "wedge"
    settings = ServingSettings(
        port=port, num_replicas=2, health_period_s=1.0, stall_s=2.0, deadline_s=30.0, max_queue=24
    )
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    serve.start(proxy_location="Disabled")
    first = First(card=Card(fingerprint="fp"), created=1, build=f"{__name__}:candidate")
    engine = AlphabetEngine(delay_s=0.01, max_rows=4, wedge=wedge)
    release = release_application(engine, settings, EngineSettings(max_rows=4), num_cpus=1)
    gateway = gateway_application(MakeService(settings), settings, first, listens=True)
    applications = {application_name("main"): release, "gateway": gateway}
    serve.run_many(
        [
            serve.RunTarget(target=app, name=name, route_prefix=None)
            for name, app in applications.items()
        ]
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


def test_a_killed_replica_loses_no_request_that_had_not_begun_and_the_next_has_its_mode(
    stand: Stand,
) -> None:
    stand.put("control", {"mode": "plain"})
    assert {each["mode"] for each in stand.replicas()} == {"plain"}
    before = {each["replica"] for each in stand.replicas()}
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
    stand.wait(lambda told: len(told) == 2 and {each["replica"] for each in told} != before)
    for _ in range(8):
        assert stand.post().json()["usage"]["speculation"]["mode"] == "plain"
    stand.put("control", {"mode": "speculative"})
    assert {each["mode"] for each in stand.replicas()} == {"speculative"}


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


def kill_gateway(stand: Stand) -> None:
    """And wait for the next one."""
    named = ray.util.list_named_actors(all_namespaces=True)
    (gateway,) = (each for each in named if "gateway#gateway" in each["name"])
    ray.kill(ray.get_actor(**gateway))
    until = time.monotonic() + 60
    while not answers(stand):
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_second_release_comes_outlives_the_gateway_with_its_weight_and_goes(
    stand: Stand,
) -> None:
    order = {"settings": {"last": "r"}, "cpus": 1, "fingerprint": "fp2"}
    stand.put("releases/next", order)
    stand.wait_for("next", "ready")
    stand.put("releases/next", order)  # again: nothing
    stand.put("plan", {"stable": "main", "candidate": "next", "weight": 1.0, "revision": 1})
    kill_gateway(stand)
    assert stand.status()["plan"]["weight"] == 1.0
    answer = stand.post()
    assert answer.headers["x-outrider-release"] == "next"
    assert answer.json()["system_fingerprint"] == "fp2"
    assert answer.json()["choices"][0]["message"]["content"] == "pqr"
    assert httpx.delete(stand.url + "/admin/releases/next", timeout=30).status_code == 409
    stand.put("plan", {"stable": "main", "revision": 2})
    assert stand.post().headers["x-outrider-release"] == "main"
    assert httpx.delete(stand.url + "/admin/releases/next", timeout=30).status_code == 202
    until = time.monotonic() + 60
    while application_name("next") in serve.status().applications:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert list(stand.status()["releases"]) == ["main"]


def test_a_release_that_can_not_be_started_has_failed_and_says_why(stand: Stand) -> None:
    stand.put("releases/wrong", {"settings": {}, "cpus": 1, "fingerprint": "fp3"})
    assert stand.wait_for("wrong", "failed")["message"] == "last: which letter?"
    assert stand.post().status_code == 200
    assert httpx.delete(stand.url + "/admin/releases/wrong", timeout=30).status_code == 202


def test_what_a_guard_said_reaches_every_replica_and_those_that_come_later(stand: Stand) -> None:
    fallen = Control(mode=Mode.PLAIN, guard_wait_s=600.0)

    async def told(control: Control | None = None) -> dict[str, Pulse]:
        release, until = open_release("main"), time.monotonic() + 60
        if control is not None:
            await release.control(control)
        while len(pulses := await release.pulses()) < 2:  # its router has not heard of both yet
            assert time.monotonic() < until
            await asyncio.sleep(0.1)
        return {pulse.replica: pulse for pulse in pulses}

    async def phase_in_a_new_gateway() -> object:
        release = open_release("main")
        watch = Watch(lambda: {"main": release}, ServingSettings(fallback_wait_s=600.0))
        await watch.look(release)
        return watch.told()["main"]["phase"]

    stand.post(ignore_eos=True, max_tokens=60)
    before = asyncio.run(told(fallen))
    assert sum(pulse.drafts.drafted for pulse in before.values()) > 0
    os.kill(stand.replicas()[0]["pid"], signal.SIGKILL)
    stand.wait(lambda now: len(now) == 2 and {each["replica"] for each in now} != before.keys())
    after = asyncio.run(told())
    assert [pulse.control for pulse in after.values()] == [fallen, fallen]
    assert asyncio.run(phase_in_a_new_gateway()) == "open"
    assert stand.post(max_tokens=8).json()["usage"]["speculation"]["drafted"] == 0
    stand.put("control", {"mode": "speculative"})
    assert [each["mode"] for each in stand.replicas()] == ["speculative"] * 2


def answers(stand: Stand) -> bool:
    try:
        return stand.post(max_tokens=4).status_code == 200
    except httpx.HTTPError:
        return False
