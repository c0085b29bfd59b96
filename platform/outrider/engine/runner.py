"""A decode loop in its own thread: requests go in from any thread, futures come out."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from dataclasses import replace

from outrider.core import Clock, Completion, Fault, FinishReason, Mode, Request, SystemClock
from outrider.engine.engine import Engine
from outrider.engine.in_flight import InFlight, OnUpdate, Waiter, describe
from outrider.engine.load import EngineLoad
from outrider.engine.mail_slot import MailSlot

CLOSE_WAIT_S = 60.0

_LOG = logging.getLogger(__name__)


class Runner:
    """Owns an engine. Every touch of the engine happens on the runner's thread, between rounds."""

    def __init__(self, engine: Engine, *, name: str = "decode", clock: Clock | None = None) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._mail = MailSlot(self._lock, clock or SystemClock())
        self._in_flight = InFlight(self._lock)
        self._load = engine.load()
        self._posted: dict[int, int] = {}  # requests handed over, not yet opened: their tokens
        self._next_post = 0
        self._is_draining = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(self, request: Request, on_update: OnUpdate | None = None) -> Future[Completion]:
        """Queue a request. Raises UserError at once where it can never be served.

        `on_update` is called on the decode thread: it must be quick. Its last update has a
        completion, however the request ends. One that raises is told no more; the request goes on
        and its future gets the result.
        """
        self._engine.check(request)
        waiter = Waiter(request, Future(), on_update)
        with self._lock:
            if self._is_draining:
                raise Fault("the engine is draining: it takes no new requests")
            post, self._next_post = self._next_post, self._next_post + 1
            self._mail.post(lambda: self._start(post, waiter))
            self._posted[post] = self._engine.most_tokens(request)
        return waiter.future

    def check(self, request: Request) -> None:
        """Raise UserError where `submit` would. It may take long where there is a constraint to
        compile; `submit` is quick behind it.
        """
        self._engine.check(request)

    def cancel(self, request_id: str) -> None:
        """Free the row and its blocks before the next round; its future gets finish ABORT."""
        self._mail.post(lambda: self._cancel(request_id))

    def set_control(
        self,
        mode: Mode,
        max_draft_length: int | None = None,
        probe_share: float | None = None,
    ) -> None:
        """How every row decodes from the next round on; `max_draft_length` in tokens.

        `probe_share`: of the rows, which draft all the same where the mode is plain.
        """
        self._mail.post(lambda: self._engine.set_control(mode, max_draft_length, probe_share))

    def load(self) -> EngineLoad:
        """What there is to do. Never waits for a round."""
        with self._lock:
            return replace(
                self._load,
                num_waiting=self._load.num_waiting + len(self._posted),
                queued_tokens=self._load.queued_tokens + sum(self._posted.values()),
            )

    def is_stalled(self, stall_s: float) -> bool:
        """True where the decode thread has died, or has work and ended no round for `stall_s`."""
        mail = self._mail
        if mail.fault is not None or not (self._thread.is_alive() or mail.is_closing):
            return True
        return mail.is_late(stall_s)

    def stats(self) -> dict[str, object]:
        """Counters and state of the engine, as plain data. Waits for the round in hand."""
        return self._mail.ask(self._engine.stats)

    def reset_prefix_cache(self) -> None:
        self._mail.ask(self._engine.reset_prefix_cache)

    def drain(self, timeout_s: float) -> bool:
        """Refuse new requests from now on and wait for the rest; False where some are left."""
        ended = self._in_flight.ended
        with ended:
            self._is_draining = True
            return ended.wait_for(lambda: not (self._posted or self._in_flight.ids), timeout_s)

    def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Stop after the round in hand; what is in flight ends as ABORT.

        Where that round does not end within `wait_s`, its thread is left to itself.
        """
        self._mail.close()
        self._thread.join(wait_s)
        if self._thread.is_alive():
            _LOG.error("the round in hand did not end in %g s: its thread is left behind", wait_s)

    # -- on the decode thread -----------------------------------------------------------------

    def _loop(self) -> None:
        try:
            while self._mail.run(lambda: self._engine.has_work):
                updates = self._engine.step()
                self._publish()  # before anyone is told: who asks then sees the row gone
                for update in updates:
                    self._in_flight.deliver(update)
            for request_id in self._in_flight.ids:
                self._cancel(request_id, "the engine was closed")
            self._abandon(FinishReason.ABORT, "the engine was closed")
        except BaseException as error:  # noqa: BLE001 - also a native library's panic
            _LOG.exception("the decode loop stopped")
            fault = self._mail.fault = f"the decode loop stopped: {describe(error)}"
            self._abandon(FinishReason.ERROR, fault)

    def _start(self, post: int, waiter: Waiter) -> None:
        # From here on the future cannot be cancelled, so that its result is never refused.
        if waiter.future.set_running_or_notify_cancel():
            self._open(waiter)
        with self._lock:
            del self._posted[post]
            self._load = self._engine.load()
            self._in_flight.ended.notify_all()

    def _open(self, waiter: Waiter) -> None:
        try:
            self._engine.submit(waiter.request)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller waits for it
            waiter.refuse(error)
        else:
            self._in_flight.add(waiter)

    def _cancel(self, request_id: str, why: str | None = None) -> None:
        self._engine.cancel(request_id, why)
        self._publish()
        # Told at once: the id is free, and the next call may be its next use.
        for update in self._engine.take_updates():
            self._in_flight.deliver(update)

    def _publish(self) -> None:
        load = self._engine.load()
        with self._lock:
            self._load = load
            self._mail.beat()

    def _abandon(self, reason: FinishReason, why: str) -> None:
        """The end of everything: whoever waits or listens hears of it."""
        for call in self._mail.take():  # late submissions end like the others
            try:
                call()
            except Exception:  # noqa: BLE001 - a broken engine may refuse anything
                _LOG.exception("a call that came too late failed")
        self._in_flight.end_all(reason, why)
