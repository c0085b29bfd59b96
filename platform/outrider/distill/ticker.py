"""One line now and then: how far it is, how fast it goes, how long it will take."""

from __future__ import annotations

from rich.console import Console

from outrider.bulk.progress import duration
from outrider.core import Clock

EVERY_S = 5.0


class Ticker:
    """Of `total` items, of which `done` were there before."""

    def __init__(
        self, console: Console, clock: Clock, *, what: str, unit: str, total: int, done: int
    ) -> None:
        self._console = console
        self._clock = clock
        self._what = what
        self._unit = unit
        self._total = total
        self._before = done
        self._began = self._last = clock.monotonic()

    def reach(self, done: int) -> None:
        """Say it if nothing was said for a while."""
        now = self._clock.monotonic()
        if now - self._last >= EVERY_S and done > self._before:
            self._last = now
            rate = (done - self._before) / (now - self._began)
            left = duration((self._total - done) / rate)
            self.say(
                f"{self._what}: {done}/{self._total} {self._unit}, {rate:.3g} {self._unit}/s, "
                f"{left} left"
            )

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
