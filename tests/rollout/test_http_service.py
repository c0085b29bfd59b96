"""A gateway over real HTTP as a rollout sees it, and what goes wrong on the way in one line."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx2 as httpx
import pytest
from http_site import Site

from outrider.core import Fault, UserError
from outrider.rollout.http_service import HttpService
from outrider.rollout.ports import Health, Service
from outrider.rollout.status import Candidate
from outrider.serving.keys import Keys
from outrider.serving.sample import Cursor, Likeness
from outrider.serving.split import Arm, Plan
from outrider.testing import AlphabetEngine

NEXT = Candidate(name="next", fingerprint="fp2", settings={"engine": {"rule": "coupled"}})
HELLO = {"messages": [{"role": "user", "content": "hello"}]}
PLAN = Plan(stable="main", candidate="next", weight=0.0, shadow_share=1.0, salt="s", revision=1)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(engines={"next": AlphabetEngine(last="y")}) as site_:
        yield site_


def test_a_release_is_deployed_planned_for_asked_read_and_removed(site: Site) -> None:
    service: Service = HttpService(site.url + "/")
    assert service.state().plan == Plan(stable="main")
    for _ in range(2):  # every method may be called again
        service.deploy(NEXT)
        service.put_plan(PLAN)
    state = service.state()
    assert (state.plan, state.model) == (PLAN, "alphabet")
    told = state.releases["next"]
    assert (told.fingerprint, told.health, told.num_replicas) == ("fp2", Health.READY, 1)
    content = service.ask("next", HELLO)["choices"][0]["message"]["content"]
    assert content.endswith("xy")
    httpx.post(site.url + "/v1/chat/completions", json=HELLO, timeout=30)
    reading = service.read(Cursor())
    while not reading.comparisons:
        reading = service.read(Cursor())
    assert {(sample.arm, sample.is_shadow) for sample in reading.samples} == {
        (Arm.STABLE, False),
        (Arm.CANDIDATE, True),
    }
    assert reading.comparisons[0].likeness is Likeness.MISMATCH
    assert service.read(reading.cursor).samples == ()
    with pytest.raises(UserError, match="release next is in the plan"):
        service.remove("next")
    service.put_plan(Plan(stable="main", salt="s", revision=2))
    for _ in range(2):
        service.remove("next")
    assert list(service.state().releases) == ["main"]


def test_a_refusal_is_the_users_and_says_why(site: Site) -> None:
    service = HttpService(site.url)
    with pytest.raises(UserError, match="weight: from 0 to 1"):
        service.put_plan(replace(PLAN, candidate=None, weight=7.0))
    with pytest.raises(UserError, match="no release 'nobody' here"):
        service.ask("nobody", HELLO)


def test_a_service_that_is_away_is_a_fault_of_one_line(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(Fault, match=f"no answer from the service at {url}") as told:
        HttpService(url).state()
    assert "\n" not in str(told.value)
    with pytest.raises(UserError, match=r"rollout\.url"):
        HttpService("127.0.0.1:8000")


def test_somebody_elses_error_page_is_not_shown() -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # 501 and a page of HTML
    url = f"http://127.0.0.1:{server.server_port}"
    with server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.handle_request)
        with pytest.raises(Fault, match="is no gateway of Outrider: 501") as told:
            HttpService(url).state()
    assert "<" not in str(told.value)


def test_the_admin_key_comes_out_of_its_file_and_is_never_said(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("# of the gateway\nsecret-one\n")
    wrong.write_text("secret-two\n")
    with Site(service_fields={"admin_keys": Keys.read(str(right), "k")}) as site:
        assert HttpService(site.url, str(right)).state().model == "alphabet"
        for file in ("", str(wrong)):
            with pytest.raises(UserError, match=r"rollout\.admin_key_file") as told:
                HttpService(site.url, file).state()
            assert "secret" not in str(told.value)
    for name, text in (("missing", None), ("empty", "# none\n")):
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        with pytest.raises(UserError, match=r"rollout\.admin_key_file"):
            HttpService("http://localhost", str(path))
