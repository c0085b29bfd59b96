"""Requests through an engine, so many in flight: each end is followed at once by the next."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outrider.core import Clock, Completion, Fault, FinishReason, Request, Update, UserError
from outrider.trial.failure import Failure

if TYPE_CHECKING:  # torch
    from outrider.engine.runner import Runner

POLL_S = 0.5  # between looks at what is overdue


@dataclass(slots=True)
class Watch:
    """Times of one request, told by the decode thread. Seconds of `clock`."""

    clock: Clock
    submitted_s: float
    first_s: float | None = None
    last_s: float | None = None
    first_tokens: int = 0  # that came together, first
    num_tokens: int = 0
    ended_s: float | None = None
    is_overdue: bool = False

    def __call__(self, update: Update) -> None:
        now_s = self.clock.monotonic()
        if update.token_ids:
            if self.first_s is None:
                self.first_s, self.first_tokens = now_s, len(update.token_ids)
            self.last_s = now_s
            self.num_tokens += len(update.token_ids)
        if update.completion is not None:
            self.ended_s = now_s

    @property
    def first_token_s(self) -> float | None:
        """Seconds to the first token; None where there is none."""
        return None if self.first_s is None else self.first_s - self.submitted_s

    @property
    def inter_token_s(self) -> float | None:
        """Mean seconds from token to token behind the first arrival; None where all came at once.

        Tokens of one round arrive together: what a reader waits for is spread over them.
        """
        behind = self.num_tokens - self.first_tokens
        if self.first_s is None or self.last_s is None or not behind:
            return None
        return (self.last_s - self.first_s) / behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How one request ended."""

    watch: Watch
    total_s: float
    completion: Completion | None = None  # None: the engine took it not
    failure: Failure | None = None  # None: a full answer


@dataclass(kw_only=True)
class ClosedLoop:
    """One batch. Raises Fault where the engine itself has stopped or stands still."""

    runner: Runner
    clock: Clock
    in_flight: int
    timeout_s: float
    _open: dict[str, tuple[Future[Completion], Watch]] = field(default_factory=dict)
    _seen: dict[str, Seen] = field(default_factory=dict)

    def run(self, requests: Sequence[Request]) -> list[Seen]:
        """In the order of `requests`."""
        for request in requests:
            while len(self._open) >= self.in_flight:
                self._settle()
            self._submit(request)
        while self._open:
            self._settle()
        return [self._seen[request.request_id] for request in requests]

    def _submit(self, request: Request) -> None:
        watch = Watch(self.clock, self.clock.monotonic())
        try:
            future = self.runner.submit(request, watch)
        except UserError:
            self._seen[request.request_id] = self._refused(watch)
            return
        self._open[request.request_id] = (future, watch)

    def _settle(self) -> None:
        """Wait for an end, or until it is time to look at who is late."""
        futures = [future for future, _ in self._open.values()]
        wait(futures, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for name, (future, watch) in list(self._open.items()):
            if future.done():
                del self._open[name]
                self._seen[name] = self._ended(future, watch)
            else:
                self._look_at(name, watch)

    def _look_at(self, name: str, watch: Watch) -> None:
        late_s = self.clock.monotonic() - watch.submitted_s
        if late_s > 2 * self.timeout_s:
            raise Fault(f"a request was cancelled and does not end: {late_s:.0f} s")
        if late_s > self.timeout_s and not watch.is_overdue:
            watch.is_overdue = True
            self.runner.cancel(name)

    def _ended(self, future: Future[Completion], watch: Watch) -> Seen:
        error = future.exception()
        if isinstance(error, UserError):
            return self._refused(watch)
        total_s = (watch.ended_s or self.clock.monotonic()) - watch.submitted_s
        if error is not None:
            return Seen(watch=watch, total_s=total_s, failure=Failure.ERROR)
        completion = future.result()
        return Seen(
            watch=watch,
            total_s=total_s,
            completion=completion,
            failure=failure_of(completion, is_overdue=watch.is_overdue),
        )

    def _refused(self, watch: Watch) -> Seen:
        total_s = self.clock.monotonic() - watch.submitted_s
        return Seen(watch=watch, total_s=total_s, failure=Failure.REFUSED)


def failure_of(completion: Completion, *, is_overdue: bool) -> Failure | None:
    match completion.finish_reason:
        case FinishReason.ABORT:
            return Failure.TIMEOUT if is_overdue else Failure.ERROR
        case FinishReason.ERROR:
            return Failure.ERROR
    return None
