"""Posts of a rollout's moves, as JSON, to addresses that an operator gave."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from outrider.config.schema import WebhookSettings
from outrider.core import Clock, SystemClock

FIRST_WAIT_S = 0.5  # it doubles
LAST_WAIT_S = 60.0
MAX_WAITING = 200  # notices; one more is dropped and told
AGAIN = frozenset({408, 425, 429})  # and all from 500: worth another try
SERVERS_ERRORS = 500

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Notice:
    """One post. `ends`: the last one about its move."""

    url: str
    body: Mapping[str, Any]
    number: int
    ends: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a post was not taken, and whether another try may help."""

    reason: str
    may_pass: bool = True


class Webhooks:
    """`ask` waits for one answer, at most `timeout_s`; `notify` returns at once.

    Notices leave one behind the other by a thread of their own, each with `tries` tries: a
    receiver gets them in order, and after a crash perhaps twice (`number` tells). An address may
    hold a secret: messages name its host alone.
    """

    def __init__(
        self, settings: WebhookSettings, *, tell: Tell, clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._tell = tell
        self._clock = clock or SystemClock()
        self._asked: tuple[str, float, float] = ("", 0.0, 0.0)  # answer, next try at, wait
        self._waiting: queue.Queue[Notice] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._stops = threading.Event()
        self.num_done = 0  # number of the last move whose notices are delivered or given up

    def ask(self, body: Mapping[str, Any]) -> str:
        """Whether the rollout may begin: empty for yes, else why not yet.

        One try; asked again too soon, it answers as before without one.
        """
        answer, at_s, wait_s = self._asked
        now = self._clock.monotonic()
        if not self._settings.pre_url or now < at_s:
            return answer
        refusal = self._try(self._settings.pre_url, {"event": "pre", **body})
        answer = f"{host(self._settings.pre_url)}: {refusal.reason}" if refusal else ""
        wait_s = min(LAST_WAIT_S, 2.0 * wait_s or FIRST_WAIT_S)
        self._asked = (answer, now + wait_s, wait_s)
        return answer

    def notify(self, number: int, body: Mapping[str, Any], *, is_end: bool) -> None:
        """Tell of move `number`. Numbers grow."""
        posts = {"step": self._settings.step_url, "done": self._settings.done_url if is_end else ""}
        given = {event: url for event, url in posts.items() if url}
        if not given:
            self.num_done = max(self.num_done, number)
        for event, url in given.items():
            told = {"event": event, "number": number, **body}
            self._put(Notice(url, told, number, ends=event == list(given)[-1]))

    def close(self, timeout_s: float) -> None:
        """Wait for what is under way; the rest is left to the next controller."""
        deadline = time.monotonic() + timeout_s
        while self._waiting.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.02)
        self._stops.set()

    def _put(self, notice: Notice) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outrider-webhooks", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._tell(f"webhook {host(notice.url)}: {MAX_WAITING} notices wait, one was dropped")

    def _run(self) -> None:
        while not self._stops.is_set():
            notice = self._waiting.get()
            refusal = self._deliver(notice)
            if refusal:
                what = f"move {notice.number} was not delivered: {refusal.reason}"
                self._tell(f"webhook {host(notice.url)}: {what}")
            if notice.ends and not self._stops.is_set():
                self.num_done = max(self.num_done, notice.number)
            self._waiting.task_done()

    def _deliver(self, notice: Notice) -> Refusal | None:
        refusal, wait_s = self._try(notice.url, notice.body), FIRST_WAIT_S
        for _ in range(self._settings.tries - 1):
            if refusal is None or not refusal.may_pass or self._stops.wait(wait_s):
                break
            refusal, wait_s = self._try(notice.url, notice.body), min(LAST_WAIT_S, 2.0 * wait_s)
        return refusal

    def _try(self, url: str, body: Mapping[str, Any]) -> Refusal | None:
        """None where it answered 2xx."""
        try:
            request = urllib.request.Request(
                url,
                data=json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace"),
                headers={"Content-Type": "application/json", "User-Agent": "outrider"},
            )
            with _OPENER.open(request, timeout=self._settings.timeout_s):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            return Refusal(
                f"HTTP {error.code}", error.code in AGAIN or error.code >= SERVERS_ERRORS
            )
        except (OSError, ValueError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)  # of a URLError; its text may quote the address
            return Refusal(type(cause).__name__)


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect is no yes, and may lead anywhere."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


def host(url: str) -> str:
    """What may be told of an address."""
    return urlsplit(url).hostname or "(no host)"
