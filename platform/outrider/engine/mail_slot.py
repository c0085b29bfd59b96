"""Calls that any thread posts and one thread runs, between whatever else it does."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from outrider.core import Clock, Fault

T = TypeVar("T")
Call = Callable[[], None]


class MailSlot:
    """Knows whether its owner rests, works or has stopped. Guarded by `lock`, its user's too."""

    def __init__(self, lock: threading.RLock, clock: Clock) -> None:
        self._clock = clock
        self._calls: deque[Call] = deque()
        self._wake = threading.Condition(lock)  # there is something to do
        self._beat_s = clock.monotonic()  # when the owner last showed itself, or came to rest
        self._is_resting = False
        self.is_closing = False
        self.fault: str | None = None

    def post(self, call: Call) -> None:
        """Have `call` run soon. Raises Fault where nobody will."""
        with self._wake:
            if self.fault is not None:
                raise Fault(self.fault)
            if self.is_closing:
                raise Fault("the engine is closed")
            if self._is_resting:  # it may have rested for long: the time to judge begins now
                self._is_resting, self._beat_s = False, self._clock.monotonic()
            self._calls.append(call)
            self._wake.notify()

    def ask(self, question: Callable[[], T]) -> T:
        """What `question` gives on the owner's thread; waits for it."""
        answer: Future[T] = Future()
        self.post(lambda: _answer(answer, question))
        return answer.result()

    def close(self) -> None:
        """Refuse calls from now on, and have the owner stop."""
        with self._wake:
            self.is_closing = True
            self._wake.notify()

    def is_late(self, limit_s: float) -> bool:
        """True where the owner has work and did not show itself for `limit_s`."""
        is_late = self._clock.monotonic() - self._beat_s > limit_s
        return is_late and not self._is_resting and not self.is_closing

    # -- of the owner's thread ----------------------------------------------------------------

    def beat(self) -> None:
        self._beat_s = self._clock.monotonic()

    def run(self, has_work: Callable[[], bool]) -> bool:
        """Run what was posted, waiting while the owner has no work of its own; False to stop."""
        with self._wake:
            while not (self._calls or self.is_closing or has_work()):
                self._is_resting = True
                self._wake.wait()
            num_calls, is_closing = len(self._calls), self.is_closing
        for _ in range(num_calls):  # one by one: where one fails, `take` finds the others
            self._calls.popleft()()
        return not is_closing

    def take(self) -> deque[Call]:
        """The calls that nobody ran."""
        with self._wake:
            calls, self._calls = self._calls, deque()
        return calls


def _answer(answer: Future[T], question: Callable[[], T]) -> None:
    try:
        answer.set_result(question())
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller waits for it
        answer.set_exception(error)
