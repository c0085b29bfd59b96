"""Posts of moves, over real HTTP on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rollout_stand import GOOD_WAY, TICK_S, Stand

from outrider.config.schema import WebhookSettings
from outrider.rollout.phase import Phase
from outrider.rollout.webhooks import Webhooks
from outrider.testing import ManualClock
from outrider.tracking.store_uri import sqlite_uri


class Receiver:
    """Answers what it is told to, and keeps what it got."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, list[int]] = {}  # by path; the last one stays; 200 where none is

        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                receiver.posts.append((self.path, json.loads(self.rfile.read(length))))
                answers = receiver.answers.get(self.path, [200])
                code = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    receiver = Receiver()
    yield receiver
    receiver.close()


def wait_for(webhooks: Webhooks, number: int) -> None:
    deadline = time.monotonic() + 20.0
    while webhooks.num_done < number:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_rollout_waits_until_the_pre_webhook_says_yes(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers["/pre"] = [403, 200]
    settings = WebhookSettings(pre_url=receiver.url("/pre"))
    stand = Stand(sqlite_uri(tmp_path / "r.db"), webhooks=settings)
    stand.begin()
    controller = stand.controller()
    assert controller.tick().phase is Phase.PENDING
    assert "deploy candidate" not in stand.service.calls
    assert stand.told == ["pre webhook: 127.0.0.1: HTTP 403"]
    time.sleep(0.6)  # it is asked again, but not at once
    assert controller.tick().phase is Phase.DEPLOYING
    ((_, first), _) = receiver.posts
    assert (first["event"], first["candidate"]) == ("pre", "candidate")


def test_every_move_is_told_in_order_and_the_end_once_more(
    tmp_path: Path, receiver: Receiver
) -> None:
    settings = WebhookSettings(step_url=receiver.url("/step"), done_url=receiver.url("/done"))
    stand = Stand(sqlite_uri(tmp_path / "r.db"), webhooks=settings)
    stand.begin()
    stand.run()
    steps = [body for path, body in receiver.posts if path == "/step"]
    assert [(body["phase"], body["step"], body["weight"]) for body in steps] == GOOD_WAY
    assert [body["number"] for body in steps] == list(range(1, len(steps) + 1))
    assert any(body["evidence"] for body in steps)
    ((_, done),) = [post for post in receiver.posts if post[0] == "/done"]
    assert (done["event"], done["phase"]) == ("done", "promoted")
    assert "settings" not in done


def test_what_a_dead_controller_did_not_deliver_the_next_one_does(
    tmp_path: Path, receiver: Receiver
) -> None:
    settings = WebhookSettings(step_url=receiver.url("/step"), tries=1)
    stand = Stand(sqlite_uri(tmp_path / "r.db"), webhooks=settings)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "shadow")  # and is gone, with nothing of its posts written down
    deadline = time.monotonic() + 20.0
    while 3 not in [body["number"] for _, body in receiver.posts]:  # its thread is not
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stand.store.keep(stand.rollout_id, "posted", "1")
    receiver.posts.clear()
    stand.run()
    assert [body["number"] for _, body in receiver.posts][:2] == [2, 3]


def test_a_post_is_tried_again_where_that_may_help(receiver: Receiver) -> None:
    told: list[str] = []
    settings = WebhookSettings(step_url=receiver.url("/step"), tries=3)
    webhooks = Webhooks(settings, tell=told.append)
    receiver.answers["/step"] = [503, 200]
    webhooks.notify(1, {"phase": "canary"}, is_end=False)
    wait_for(webhooks, 1)
    assert len(receiver.posts) == 2
    receiver.answers["/step"] = [404]
    webhooks.notify(2, {"phase": "canary"}, is_end=False)
    wait_for(webhooks, 2)
    assert len(receiver.posts) == 3
    assert told == ["webhook 127.0.0.1: move 2 was not delivered: HTTP 404"]
    webhooks.close(1.0)


def test_a_redirect_is_no_yes(receiver: Receiver) -> None:
    receiver.answers["/pre"] = [302]
    webhooks = Webhooks(WebhookSettings(pre_url=receiver.url("/pre")), tell=print)
    assert webhooks.ask({}) == "127.0.0.1: HTTP 302"
    assert [path for path, _ in receiver.posts] == ["/pre"]


def test_nobody_there_is_no_yes_and_no_secret_is_told() -> None:
    told: list[str] = []
    address = "http://ada:s3cret@127.0.0.1:1/hooks/t0ken"
    settings = WebhookSettings(pre_url=address, step_url=address, tries=1)
    webhooks = Webhooks(settings, tell=told.append, clock=ManualClock(10.0))
    refusal = webhooks.ask({})
    assert refusal
    webhooks.notify(1, {}, is_end=False)
    wait_for(webhooks, 1)
    for line in (refusal, *told):
        assert "s3cret" not in line
        assert "t0ken" not in line


def test_a_receiver_that_hangs_holds_up_no_look(tmp_path: Path) -> None:
    """It takes connections and never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        settings = WebhookSettings(step_url=url, tries=1, timeout_s=30.0)
        stand = Stand(sqlite_uri(tmp_path / "r.db"), webhooks=settings)
        stand.begin()
        controller = stand.controller()
        began = time.monotonic()
        stand.until(controller, "canary")
        assert time.monotonic() - began < 20.0
        assert TICK_S
