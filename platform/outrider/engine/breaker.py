"""The breaker: takes speculation back when it surely does not pay, and tries it again later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from outrider.config.schema import BreakerSettings
from outrider.engine.evidence import NO_EVIDENCE, Evidence

_TOLERATED_FAILURES = 0.1  # share of drafting rows whose drafter may fail
_FAILURE_WEIGHT = 0.2  # of the e-value; failures speak so clearly that little of it is enough
_GOODPUT_MEMORY = 0.98  # the stake looks back over about 50 rounds
_FAILURE_MEMORY = 0.9  # a drafter that begins to fail must be noticed within 20 rounds
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads consecutive row ids (Knuth 6.4)
_MASK = (1 << 64) - 1


class Phase(Enum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Phase.CLOSED: "Speculation is allowed.",
    Phase.OPEN: "Speculation surely cost more than it gave; every round is plain for a while.",
    Phase.HALF_OPEN: "A small share of rows drafts to see whether speculation pays again.",
}


@dataclass(frozen=True, slots=True)
class Observation:
    """One speculative round."""

    ratio: float  # goodput of this round over predicted plain goodput, >= 0
    bound: float  # the largest ratio this round could have given, known before it ran
    failed_ratio: float = 0.0  # share of the drafting rows whose drafter failed


@dataclass(frozen=True, slots=True)
class BreakerState:
    """All that a breaker remembers. Round numbers are the engine's."""

    phase: Phase = Phase.CLOSED
    since_round: int = 0  # when this phase began
    wait_rounds: int = 0  # length of the last or current wait; 0: never opened
    next_probe_round: int = 0  # meaningful while OPEN
    epoch: int = 0  # times it opened
    goodput: Evidence = NO_EVIDENCE  # against "goodput ratio >= 1 - min_gain"
    failures: Evidence = NO_EVIDENCE  # against "at most one drafter call in ten fails"
    gain: Evidence = NO_EVIDENCE  # against "goodput ratio <= 1", while HALF_OPEN
    num_probes: int = 0  # speculative rounds of this trial
    probe_ratio_sum: float = 0.0

    @property
    def e_value(self) -> float:
        """Evidence that speculation does not pay; a weighted mean of two e-processes is one."""
        return (
            1.0 - _FAILURE_WEIGHT
        ) * self.goodput.wealth + _FAILURE_WEIGHT * self.failures.wealth

    def to_dict(self) -> dict[str, object]:
        return {
            "phase": self.phase.value,
            "sentence": self.phase.sentence,
            "since_round": self.since_round,
            "e_value": self.e_value,
            "wait_rounds": self.wait_rounds,
            "next_probe_round": self.next_probe_round if self.phase is Phase.OPEN else None,
            "epoch": self.epoch,
            "num_probes": self.num_probes,
        }


CLOSED = BreakerState()


def advance(
    state: BreakerState, observation: Observation | None, settings: BreakerSettings, round_: int
) -> BreakerState:
    """The state after round `round_`, which was plain where `observation` is None.

    1. Disabled: always closed.
    2. Open: half-open once the wait is over.
    3. Closed: opens when the e-value reaches 1/alpha.
    4. Half-open: closes when the probes pay, else opens again and waits twice as long.
    """
    if not settings.enabled:
        return state
    if state.phase is Phase.OPEN:
        due = round_ >= state.next_probe_round
        return _half_open(state, round_) if due else state
    if observation is None:
        return state
    if state.phase is Phase.CLOSED:
        return _while_closed(state, observation, settings, round_)
    return _while_half_open(state, observation, settings, round_)


def _while_closed(
    state: BreakerState, seen: Observation, settings: BreakerSettings, round_: int
) -> BreakerState:
    null = 1.0 - settings.min_gain
    worst = max(seen.bound - null, settings.min_gain)
    after = BreakerState(
        since_round=state.since_round,
        wait_rounds=state.wait_rounds,
        epoch=state.epoch,
        goodput=state.goodput.bet(null - min(seen.ratio, seen.bound), worst, _GOODPUT_MEMORY),
        failures=state.failures.bet(
            seen.failed_ratio - _TOLERATED_FAILURES, _TOLERATED_FAILURES, _FAILURE_MEMORY
        ),
    )
    return _open(after, settings, round_) if after.e_value >= 1.0 / settings.alpha else after


def _while_half_open(
    state: BreakerState, seen: Observation, settings: BreakerSettings, round_: int
) -> BreakerState:
    ratio = seen.ratio * (1.0 - seen.failed_ratio)  # a drafter that fails does not pay
    after = BreakerState(
        phase=Phase.HALF_OPEN,
        since_round=state.since_round,
        wait_rounds=state.wait_rounds,
        epoch=state.epoch,
        goodput=state.goodput,
        failures=state.failures,
        gain=state.gain.bet(ratio - 1.0, 1.0, _GOODPUT_MEMORY),
        num_probes=state.num_probes + 1,
        probe_ratio_sum=state.probe_ratio_sum + ratio,
    )
    if after.gain.wealth >= 1.0 / settings.alpha:
        return _close(after, round_)
    if after.num_probes < settings.probe_rounds:
        return after
    pays = after.probe_ratio_sum > after.num_probes
    return _close(after, round_) if pays else _open(after, settings, round_)


def _open(state: BreakerState, settings: BreakerSettings, round_: int) -> BreakerState:
    """Wait twice as long as before, unless it had held closed for longer than that wait."""
    held = state.phase is Phase.CLOSED and round_ - state.since_round > state.wait_rounds
    fresh = state.wait_rounds == 0 or held
    wait = settings.first_wait_rounds if fresh else 2 * state.wait_rounds
    wait = min(wait, settings.max_wait_rounds)
    return BreakerState(
        phase=Phase.OPEN,
        since_round=round_,
        wait_rounds=wait,
        next_probe_round=round_ + wait,
        epoch=state.epoch + 1,
        goodput=state.goodput,
        failures=state.failures,
    )


def _half_open(state: BreakerState, round_: int) -> BreakerState:
    return BreakerState(
        phase=Phase.HALF_OPEN,
        since_round=round_,
        wait_rounds=state.wait_rounds,
        epoch=state.epoch,
        goodput=state.goodput,
        failures=state.failures,
    )


def _close(state: BreakerState, round_: int) -> BreakerState:
    """Start afresh; the wait is remembered, so that flapping backs off."""
    return BreakerState(since_round=round_, wait_rounds=state.wait_rounds, epoch=state.epoch)


def probing_rows(row_ids: Sequence[int], epoch: int, share: float) -> frozenset[int]:
    """The rows that may draft while half-open: the same ones for a whole trial, never none.

    A row is chosen by a hash of its id and the epoch, so that every trial asks others.
    """
    wanted = math.ceil(share * len(row_ids))
    return frozenset(sorted(row_ids, key=lambda row_id: _hash(row_id, epoch))[:wanted])


def is_in_share(row_id: int, share: float) -> bool:
    """Whether a row is one of `share` of all rows, for its whole life. There may be none."""
    return _hash(row_id, 0) < share * 2**64


def _hash(row_id: int, epoch: int) -> int:
    mixed = ((row_id + 1) * _GOLDEN + epoch * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 32)) * _GOLDEN) & _MASK
    return mixed ^ (mixed >> 29)
