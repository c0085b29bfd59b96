"""The driver's book: records as they come from Ray, entered in the manifest and in the run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from outrider.bulk.live import Tally
from outrider.bulk.manifest import Manifest
from outrider.bulk.parts import PartState
from outrider.core import Clock, Fault, UserError
from outrider.telemetry import meters
from outrider.tracking.tracker import Run

POLL_S = 0.5
SAVE_EVERY_S = 1.0
SAVE_SHARE = 20  # a save may cost at most one part in this many of the driver's time


class Book:
    """Enters records in the manifest and windows in the run."""

    def __init__(self, manifest: Manifest, clock: Clock, run: Run, window_s: float) -> None:
        self._manifest = manifest
        self._clock = clock
        self._run = run
        self._window_s = window_s
        self._began = self._window_began = clock.monotonic()
        self._next_save = self._began
        self._before = Tally()

    def enter(self, record: Mapping[str, Any]) -> None:
        """A part's record; or the worker's reason to stop the job."""
        if "user_error" in record:
            raise UserError(record["user_error"])
        if "fault" in record:
            raise Fault(record["fault"])
        self._manifest.record(record["shard"], PartState.from_dict(record["state"]))
        now = self._clock.monotonic()
        if now >= self._next_save:
            self._manifest.save()
            cost = self._clock.monotonic() - now
            self._next_save = now + max(SAVE_EVERY_S, SAVE_SHARE * cost)

    def window(self, tally: Tally, *, last: bool = False) -> None:
        """One point of the series per window; its step is whole seconds since decoding began."""
        now = self._clock.monotonic()
        if tally.emitted == 0:  # the engine is loading: no throughput, not a throughput of 0
            self._window_began = now
            return
        span = now - self._window_began
        if span < self._window_s and not (last and span > 0):
            return
        done = tally.since(self._before)
        figures = meters.in_window(_figures(done, span))
        self._run.log_window(figures, step=round(now - self._began), at_s=self._clock.time())
        self._window_began, self._before = now, tally


def _figures(done: Tally, span_s: float) -> dict[str, float]:
    """Arms share the seconds, so that their throughputs add up to the job's."""
    plain = done.emitted - done.speculative
    figures = {
        meters.TOKENS_PER_S.name: done.speculative / span_s,
        meters.NUM_ROWS_DONE.name: float(done.num_rows),
    }
    if plain:
        figures[meters.PLAIN_TOKENS_PER_S.name] = plain / span_s
    if done.evaluated:
        figures[meters.ACCEPTANCE_RATIO.name] = done.accepted / done.evaluated
    return figures


def polled(
    records: Iterator[dict[str, Any]], num_expected: int
) -> Generator[dict[str, Any] | None, None, None]:
    """Records as they come, and None every `POLL_S` in between, so that the view stays alive.

    Ray is listened to in a thread of its own: the main thread stays open to signals.
    """
    heard: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()

    def listen() -> None:
        try:
            for record in records:
                heard.put(record)
            heard.put(None)
        except Exception as error:  # noqa: BLE001  (raised again in the main thread)
            heard.put(error)

    threading.Thread(target=listen, name="ray records", daemon=True).start()
    while num_expected:
        try:
            item = heard.get(timeout=POLL_S)
        except queue.Empty:
            yield None
            continue
        if isinstance(item, Exception):
            raise Fault(f"Ray gave up: {_first_line(item)}") from item
        if item is None:
            raise Fault("Ray ended with shards undone: run the same command again")
        num_expected -= 1
        yield item


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
