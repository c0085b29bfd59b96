"""Progress while the job runs: a live bar on a terminal, else a plain line every few seconds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from outrider.bulk.live import Tally
from outrider.core import Clock

PLAIN_EVERY_S = 5.0
STILL_EVERY_S = 30.0  # while no row ends
RATE_OVER_S = 10.0  # live tok/s looks back this far
HOUR_S, MINUTE_S = 3600, 60


@dataclass(frozen=True, slots=True)
class Glance:
    """What a person sees at one moment."""

    num_rows: int  # ended, done or failed, those of earlier runs too
    num_total: int
    tokens_per_s: float  # over the last seconds, both arms
    acceptance_ratio: float | None
    eta_s: float | None  # None: not known yet

    def line(self) -> str:
        acceptance = ""
        if self.acceptance_ratio is not None:
            acceptance = f", {self.acceptance_ratio:.0%} accepted"
        left = "" if self.eta_s is None else f", {duration(self.eta_s)} left"
        rows = f"{self.num_rows}/{self.num_total} rows"
        return f"{rows}, {self.tokens_per_s:.0f} tok/s{acceptance}{left}"


class Pace:
    """Turns tallies into rates. Pure but for what it remembers: `(tally, now) -> Glance`."""

    def __init__(self, num_total: int, num_before: int, now: float) -> None:
        self._num_total = num_total
        self._num_before = num_before
        self._seen: deque[tuple[float, Tally]] = deque([(now, Tally())])
        self._first_row: float | None = None

    def glance(self, tally: Tally, num_recorded: int, now: float) -> Glance:
        """`num_recorded` rows are in recorded parts; the tally may be ahead of them."""
        self._seen.append((now, tally))
        while len(self._seen) > 2 and self._seen[0][0] < now - RATE_OVER_S:  # noqa: PLR2004
            self._seen.popleft()
        began, before = self._seen[0]
        rate = tally.since(before).emitted / (now - began) if now > began else 0.0
        num_rows = min(self._num_total, max(num_recorded, self._num_before + tally.num_rows))
        ratio = tally.accepted / tally.evaluated if tally.evaluated else None
        return Glance(num_rows, self._num_total, rate, ratio, self._eta(num_rows, now))

    def _eta(self, num_rows: int, now: float) -> float | None:
        """By the rows of this run since the first one ended; loading is not counted."""
        if num_rows <= self._num_before:
            self._first_row = now
            return None
        began = self._first_row
        if began is None or now <= began:
            return None
        return (self._num_total - num_rows) * (now - began) / (num_rows - self._num_before)


def duration(seconds: float) -> str:
    """4 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} min"


class ProgressView:
    """Shows glances on a console."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._last = float("-inf")
        self._rows = -1
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=24),
                TextColumn("{task.description}"),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("starting the engine", total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, glance: Glance) -> None:
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=glance.num_rows,
                total=glance.num_total,
                description=glance.line(),
            )
            return
        now = self._clock.monotonic()
        wait_s = PLAIN_EVERY_S if glance.num_rows != self._rows else STILL_EVERY_S
        if now - self._last >= wait_s:
            self._last, self._rows = now, glance.num_rows
            self.say(glance.line())

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
