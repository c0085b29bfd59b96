"""Who waits for which request: its future, and the listener that hears its updates."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from outrider.core import Completion, Fault, FinishReason, Request, Update, UserError

OnUpdate = Callable[[Update], None]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiter:
    """Whoever handed a request over."""

    request: Request
    future: Future[Completion]
    on_update: OnUpdate | None

    def refuse(self, error: BaseException) -> None:
        """The engine did not take the request."""
        told = error if isinstance(error, Exception) else Fault(describe(error))
        self.future.set_exception(told)
        if self.on_update is not None:
            end = _end(self.request.request_id, FinishReason.ERROR, describe(error))
            _tell(self.on_update, end)


class InFlight:
    """The requests that an engine has taken and not ended. One thread changes it; `ended`, over
    the lock it is given, is notified of each that goes.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.ended = threading.Condition(lock)
        self._futures: dict[str, Future[Completion]] = {}
        self._listeners: dict[str, OnUpdate] = {}

    @property
    def ids(self) -> list[str]:
        return list(self._futures)

    def add(self, waiter: Waiter) -> None:
        request_id = waiter.request.request_id
        self._futures[request_id] = waiter.future
        if waiter.on_update is not None:
            self._listeners[request_id] = waiter.on_update

    def deliver(self, update: Update) -> None:
        """Tell the listener, and the future where the request has ended."""
        listener = self._listeners.get(update.request_id)
        if listener is not None and not _tell(listener, update):
            del self._listeners[update.request_id]
        if update.completion is None:
            return
        self._listeners.pop(update.request_id, None)
        self._futures[update.request_id].set_result(update.completion)
        with self.ended:  # behind the result: who has drained finds every future done
            del self._futures[update.request_id]
            self.ended.notify_all()

    def end_all(self, reason: FinishReason, why: str) -> None:
        """Whoever waits or listens hears of it."""
        for request_id in self.ids:
            self.deliver(_end(request_id, reason, why))


def describe(error: BaseException) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


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
