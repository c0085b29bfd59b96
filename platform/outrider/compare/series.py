"""What the plots show, out of a trial's observations and turns. Pure, numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outrider.bench.bootstrap import interval, resamples
from outrider.core import add_by_position
from outrider.trial.observation import Observation, Turn

WINDOW = 9  # requests of the rolling median
POINTS = (50, 95, 99)  # percentiles that are marked


@dataclass(frozen=True, slots=True)
class Positions:
    """Acceptance by draft position, the first is 1."""

    attempts: tuple[int, ...]  # drafted tokens that were tested there
    accepts: tuple[int, ...]

    @property
    def ratios(self) -> list[float]:
        return [
            accepts / attempts if attempts else float("nan")
            for accepts, attempts in zip(self.accepts, self.attempts, strict=True)
        ]


def positions(observations: Sequence[Observation]) -> Positions:
    """Summed over `observations`, up to the last position that was tested."""
    attempts: list[int] = []
    accepts: list[int] = []
    for seen in observations:
        add_by_position(attempts, list(seen.position_attempts))
        add_by_position(accepts, list(seen.position_accepts))
    accepts += [0] * (len(attempts) - len(accepts))
    while attempts and not attempts[-1]:
        attempts.pop()
    return Positions(tuple(attempts), tuple(accepts[: len(attempts)]))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean draft length of each request, in the order of their starts."""

    at_s: tuple[float, ...]  # since the trial began
    tokens: tuple[float, ...]  # drafted per round; a plain round counts as 0

    @property
    def medians(self) -> list[float]:
        """Over WINDOW requests around each, fewer at the ends and where there are few."""
        half = min(WINDOW // 2, max(1, len(self.tokens) // 6))
        return [
            float(np.median(self.tokens[max(0, index - half) : index + half + 1]))
            for index in range(len(self.tokens))
        ]


def lengths(observations: Sequence[Observation]) -> Lengths:
    ordered = sorted(observations, key=lambda seen: seen.submitted_s)
    decoded = [seen for seen in ordered if seen.num_rounds]
    return Lengths(
        tuple(seen.submitted_s for seen in decoded),
        tuple(seen.drafted / seen.num_rounds for seen in decoded),
    )


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens per second over turns, with its bootstrap interval."""

    value: float
    low: float
    high: float
    num_turns: int


def throughput(turns: Sequence[Turn], confidence: float) -> Throughput | None:
    """All tokens over all seconds; turns are resampled. None where nothing was timed."""
    tokens = np.array([turn.emitted for turn in turns], float)
    seconds = np.array([turn.seconds for turn in turns], float)
    if not seconds.sum():
        return None
    picks = resamples(len(turns))
    rates = tokens[picks].sum(axis=1) / np.maximum(seconds[picks].sum(axis=1), 1e-9)
    low, high = interval(rates, confidence)
    return Throughput(float(tokens.sum() / seconds.sum()), low, high, len(turns))


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds of every full answer, ascending."""

    seconds: tuple[float, ...]

    @property
    def percentiles(self) -> list[float]:
        """At POINTS; between two requests linearly, as numpy does."""
        return [float(value) for value in np.percentile(self.seconds, POINTS)]

    @property
    def shares(self) -> list[float]:
        """The share of requests that were as fast: the middle of each one's step, below 1."""
        count = len(self.seconds)
        return [(index + 0.5) / count for index in range(count)]


def latencies(observations: Sequence[Observation], figure: str) -> Latencies:
    """`figure`: first_token_s, inter_token_s or total_s. Failed requests are left out."""
    values = [getattr(seen, figure) for seen in observations if not seen.error]
    return Latencies(tuple(sorted(value for value in values if value is not None)))
