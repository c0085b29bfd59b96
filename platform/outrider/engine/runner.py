"""A decode loop in its own thread: requests go in from any thread, futures come out."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from outrider.core import (
    Clock,
    Completion,
    Fault,
    FinishReason,
    Mode,
    Request,
    SystemClock,
    Update,
    UserError,
)
from outrider.engine.engine import Engine
from outrider.engine.load import EngineLoad

T = TypeVar("T")
OnUpdate = Callable[[Update], None]

CLOSE_WAIT_S = 60.0

_LOG = logging.getLogger(__name__)


class Runner:
    """Owns an engine. Every touch of the engine happens on the runner's thread, between rounds."""

    def __init__(self, engine: Engine, *, name: str = "decode", clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._load = engine.load()
        self._posted: dict[int, int] = {}  # requests handed over, not yet opened: their tokens
        self._next_post = 0
        self._beat_s = self._clock.monotonic()  # when a round last ended, or work came to rest
        self._is_resting = False
        self._calls: deque[Callable[[], None]] = deque()
        lock = threading.RLock()
        self._wake = threading.Condition(lock)  # there is something to do
        self._ended = threading.Condition(lock)  # a request has ended
        self._futures: dict[str, Future[Completion]] = {}
        self._listeners: dict[str, OnUpdate] = {}
        self._is_draining = False
        self._is_closing = False
        self._fault: str | None = None
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(self, request: Request, on_update: OnUpdate | None = None) -> Future[Completion]:
        """Queue a request. Raises UserError at once where it can never be served.

        `on_update` is called on the decode thread: it must be quick. Its last update has a
        completion, however the request ends. One that raises is told no more; the request goes on
        and its future gets the result.
        """
        self._engine.check(request)
        future: Future[Completion] = Future()
        with self._wake:
            if self._is_draining:
                raise Fault("the engine is draining: it takes no new requests")
            post, self._next_post = self._next_post, self._next_post + 1
            self._post(lambda: self._start(post, request, future, on_update))
            self._posted[post] = self._engine.most_tokens(request)
        return future

    def check(self, request: Request) -> None:
        """Raise UserError where `submit` would. It may take long where there is a constraint to
        compile; `submit` is quick behind it.
        """
        self._engine.check(request)

    def cancel(self, request_id: str) -> None:
        """Free the row and its blocks before the next round; its future gets finish ABORT."""
        self._post(lambda: self._cancel(request_id))

    def set_control(self, mode: Mode, max_draft_length: int | None = None) -> None:
        """How every row decodes from the next round on; `max_draft_length` in tokens."""
        self._post(lambda: self._engine.set_control(mode, max_draft_length))

    def load(self) -> EngineLoad:
        """What there is to do. Never waits for a round."""
        with self._wake:
            return replace(
                self._load,
                num_waiting=self._load.num_waiting + len(self._posted),
                queued_tokens=self._load.queued_tokens + sum(self._posted.values()),
            )

    def is_stalled(self, stall_s: float) -> bool:
        """True where the decode thread has died, or has work and ended no round for `stall_s`."""
        if self._fault is not None or not (self._thread.is_alive() or self._is_closing):
            return True
        is_late = self._clock.monotonic() - self._beat_s > stall_s
        return is_late and not self._is_resting and not self._is_closing

    def stats(self) -> dict[str, object]:
        """Counters and state of the engine, as plain data. Waits for the round in hand."""
        return self._ask(self._engine.stats)

    def reset_prefix_cache(self) -> None:
        self._ask(self._engine.reset_prefix_cache)

    def drain(self, timeout_s: float) -> bool:
        """Refuse new requests from now on and wait for the rest; False where some are left."""
        with self._ended:
            self._is_draining = True
            return self._ended.wait_for(lambda: not (self._posted or self._futures), timeout_s)

    def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Stop after the round in hand; what is in flight ends as ABORT.

        Where that round does not end within `wait_s`, its thread is left to itself.
        """
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join(wait_s)
        if self._thread.is_alive():
            _LOG.error("the round in hand did not end in %g s: its thread is left behind", wait_s)

    def _ask(self, question: Callable[[], T]) -> T:
        answer: Future[T] = Future()
        self._post(lambda: _answer(answer, question))
        return answer.result()

    def _post(self, call: Callable[[], None]) -> None:
        with self._wake:
            if self._fault is not None:
                raise Fault(self._fault)
            if self._is_closing:
                raise Fault("the engine is closed")
            if self._is_resting:  # it may have rested for long: the time to judge begins now
                self._is_resting, self._beat_s = False, self._clock.monotonic()
            self._calls.append(call)
            self._wake.notify()

    def _start(
        self,
        post: int,
        request: Request,
        future: Future[Completion],
        on_update: OnUpdate | None,
    ) -> None:
        # From here on the future cannot be cancelled, so that its result is never refused.
        if future.set_running_or_notify_cancel():
            self._open(request, future, on_update)
        with self._wake:
            del self._posted[post]
            self._load = self._engine.load()
            self._ended.notify_all()

    def _open(
        self, request: Request, future: Future[Completion], on_update: OnUpdate | None
    ) -> None:
        try:
            self._engine.submit(request)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller waits for it
            told = error if isinstance(error, Exception) else Fault(_describe(error))
            future.set_exception(told)
            if on_update is not None:
                _tell(on_update, _end(request.request_id, FinishReason.ERROR, _describe(error)))
            return
        self._futures[request.request_id] = future
        if on_update is not None:
            self._listeners[request.request_id] = on_update

    def _cancel(self, request_id: str, why: str | None = None) -> None:
        self._engine.cancel(request_id, why)
        self._publish()
        # Told at once: the id is free, and the next call may be its next use.
        for update in self._engine.take_updates():
            self._deliver(update)

    def _loop(self) -> None:
        try:
            while self._run_calls():
                updates = self._engine.step()
                self._publish()  # before anyone is told: who asks then sees the row gone
                for update in updates:
                    self._deliver(update)
            for request_id in list(self._futures):
                self._cancel(request_id, "the engine was closed")
            self._abandon(FinishReason.ABORT, "the engine was closed")
        except BaseException as error:  # noqa: BLE001 - also a native library's panic
            _LOG.exception("the decode loop stopped")
            self._fault = f"the decode loop stopped: {_describe(error)}"
            self._abandon(FinishReason.ERROR, self._fault)

    def _run_calls(self) -> bool:
        """Run what was posted, waiting while there is nothing to decode; False to stop."""
        with self._wake:
            while not (self._calls or self._is_closing or self._engine.has_work):
                self._is_resting = True
                self._wake.wait()
            num_calls, is_closing = len(self._calls), self._is_closing
        for _ in range(num_calls):  # one by one: where one fails, `_abandon` finds the others
            self._calls.popleft()()
        return not is_closing

    def _publish(self) -> None:
        load = self._engine.load()
        with self._wake:
            self._load, self._beat_s = load, self._clock.monotonic()

    def _deliver(self, update: Update) -> None:
        listener = self._listeners.get(update.request_id)
        if listener is not None and not _tell(listener, update):
            del self._listeners[update.request_id]
        if update.completion is None:
            return
        self._listeners.pop(update.request_id, None)
        self._futures[update.request_id].set_result(update.completion)
        with self._ended:  # behind the result: who has drained finds every future done
            del self._futures[update.request_id]
            self._ended.notify_all()

    def _abandon(self, reason: FinishReason, why: str) -> None:
        """The end of everything: whoever waits or listens hears of it."""
        with self._wake:
            calls, self._calls = self._calls, deque()
        for call in calls:  # late submissions end like the others
            try:
                call()
            except Exception:  # noqa: BLE001 - a broken engine may refuse anything
                _LOG.exception("a call that came too late failed")
        for request_id in list(self._futures):
            self._deliver(_end(request_id, reason, why))


def _answer(answer: Future[T], question: Callable[[], T]) -> None:
    try:
        answer.set_result(question())
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller waits for it
        answer.set_exception(error)


def _tell(listener: OnUpdate, update: Update) -> bool:
    """False where the listener failed: one caller's mistake must not end everyone's requests."""
    try:
        listener(update)
    except Exception:  # noqa: BLE001 - whatever it is
        _LOG.exception("the listener of %r failed: it is told no more", update.request_id)
        return False
    return True


def _end(request_id: str, reason: FinishReason, why: str) -> Update:
    completion = Completion(
        request_id=request_id, token_ids=(), text="", finish_reason=reason, error=why
    )
    return Update(request_id=request_id, completion=completion)


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
