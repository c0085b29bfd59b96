"""A drafter may fail, be slow or lie: none of it reaches the round (law 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch

from outrider.core import Clock
from outrider.engine.drafters import (
    NO_OFFER,
    Drafted,
    Drafter,
    DraftRow,
    FeatureReader,
    Offer,
    Proposal,
    Read,
    SafeDrafter,
)

_Q_TOLERANCE = 1e-4  # how far a row of q may be from summing to 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Failed:
    reason: str


class GuardedDrafter:
    """Turns whatever `inner` does wrong into `Proposal.failure` or an entry of `take_failures`.

    An exception or a wrong count spoils the batch, since nobody knows whose draft is whose; a bad
    offer or block spoils its own row only. A call slower than `timeout_s` is reported, but its
    result is kept: it is late, not wrong.
    """

    def __init__(
        self, inner: Drafter, *, vocab_size: int, clock: Clock, timeout_s: float | None = None
    ) -> None:
        self._inner = inner
        self._vocab_size = vocab_size
        self._clock = clock
        self._timeout_s = timeout_s
        self._failures: list[str] = []
        self._reader = inner if isinstance(inner, FeatureReader) else None
        self._inner_failures = inner.take_failures if isinstance(inner, SafeDrafter) else None

    @property
    def name(self) -> str:
        return self._inner.name

    def take_failures(self) -> list[str]:
        """Failures that no proposal carries, since last asked: of offer, read, release; delays."""
        failures, self._failures = self._failures, []
        if self._inner_failures is not None:
            failures += self._inner_failures()
        return failures

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return () if self._reader is None else self._reader.feature_layers

    def read(self, reads: Sequence[Read]) -> None:
        if self._reader is None:
            return
        done = self._attempt("read", partial(self._reader.read, reads))
        if isinstance(done, _Failed):
            self._failures.append(done.reason)

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        offers = self._attempt("offer", lambda: _counted(self._inner.offer(rows, limits), rows))
        if isinstance(offers, _Failed):
            self._failures.append(offers.reason)
            return [NO_OFFER] * len(rows)
        return [self._checked_offer(*pair) for pair in zip(offers, limits, strict=True)]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        drafted = self._attempt("propose", lambda: self._propose(rows, lengths))
        if isinstance(drafted, _Failed):
            return Drafted([Proposal([], failure=drafted.reason) for _ in rows])
        pairs = zip(drafted.proposals, lengths, strict=True)
        return Drafted([self._checked_proposal(*pair) for pair in pairs], drafted.num_steps)

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        done = self._attempt("release", lambda: self._inner.release(row_id, tokens))
        if isinstance(done, _Failed):
            self._failures.append(done.reason)

    def _propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        drafted = self._inner.propose(rows, lengths)
        _counted(drafted.proposals, rows)
        return drafted

    def _checked_offer(self, offer: Offer, limit: int) -> Offer:
        checked = self._attempt("offer", lambda: _crop(offer, limit))
        if isinstance(checked, _Failed):
            self._failures.append(checked.reason)
            return NO_OFFER
        return checked

    def _checked_proposal(self, proposal: Proposal, length: int) -> Proposal:
        checked = self._attempt("propose", lambda: _check(proposal, length, self._vocab_size))
        if isinstance(checked, _Failed):
            return Proposal([], failure=checked.reason)
        return proposal

    def _attempt(self, what: str, call: Callable[[], T]) -> T | _Failed:
        start = self._clock.monotonic()
        try:
            result = call()
        except Exception as error:  # noqa: BLE001
            # Whatever a drafter raises costs speed, never a request: it is told to the breaker.
            return _Failed(f"{self.name}: {what} failed: {type(error).__name__}: {error}")
        seconds = self._clock.monotonic() - start
        if self._timeout_s is not None and seconds > self._timeout_s:
            limit = f"{self._timeout_s:.3f} s allowed"
            self._failures.append(f"{self.name}: {what} took {seconds:.3f} s, {limit}")
        return result


S = TypeVar("S", bound=Sized)


def _counted(answers: S, rows: Sized) -> S:
    if len(answers) != len(rows):
        raise ValueError(f"{len(answers)} answers for {len(rows)} rows")
    return answers


def _crop(offer: Offer, limit: int) -> Offer:
    """The offer, cut at the limit. Raises ValueError where a level is no class."""
    if any(not isinstance(level, int) or level < 0 for level in offer.levels):
        raise ValueError(f"levels {offer.levels} are not all whole numbers from 0")
    if len(offer.levels) <= limit:
        return offer
    return replace(offer, levels=offer.levels[: max(0, limit)])


def _check(proposal: Proposal, length: int, vocab_size: int) -> None:
    """Raise ValueError unless the block can be scored and judged."""
    tokens, q = proposal.tokens, proposal.q
    if len(tokens) > length:
        raise ValueError(f"{len(tokens)} tokens where {length} were asked for")
    for token in tokens:
        if not isinstance(token, int) or not 0 <= token < vocab_size:
            raise ValueError(f"token {token!r} is not in the vocabulary of {vocab_size}")
    if q is not None:
        _check_q(tokens, q, vocab_size)


def _check_q(tokens: Sequence[int], q: torch.Tensor, vocab_size: int) -> None:
    """`q` must be [tokens, vocab], each row a distribution that can give its token."""
    if tuple(q.shape) != (len(tokens), vocab_size):
        raise ValueError(f"q of shape {tuple(q.shape)} for {len(tokens)} tokens of {vocab_size}")
    sums = q.sum(dim=-1)  # NaN and infinity show in the sum
    if not bool(((sums - 1.0).abs() <= _Q_TOLERANCE).all()) or bool((q < 0).any()):
        raise ValueError("q is not a distribution")
    if any(float(q[i, token]) == 0.0 for i, token in enumerate(tokens)):
        raise ValueError("q rules out a token that was drawn from it")
