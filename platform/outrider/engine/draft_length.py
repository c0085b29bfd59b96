"""The length rule: how many tokens each row drafts in a round.

It looks at the prefix only (through `Offer.levels`) and never at a drawn token (law 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

LEAST_SLOT_GAIN = 0.02
"""Expected tokens below which a draft slot is not spent, however cheap its cost is believed to be:
the cost of a slot cannot be told from 0 at this size, and a wrong drafter must come to rest."""

_SLOTS = 4  # tokens over which the price of one is told: rounds come in steps of sizes


class RoundSeconds(Protocol):
    """What the rule asks of a cost model."""

    def predict_range(self, rows: int, first: int, count: int, draft_steps: int) -> list[float]:
        """Seconds of rounds of first, first + 1, ... tokens scored: [count]."""
        ...


@dataclass(frozen=True, slots=True)
class RowChance:
    """What one decoding row could draft."""

    acceptance: Sequence[float]  # [limit] P(position accepted | all before it are)
    num_steps: int = 0  # draft forwards per drafted token
    num_run: int = 0  # what offers took, in draft forwards: spent, whatever is drafted
    num_seen: int = 0  # drafted tokens that need no further one
    num_first: int = 0  # draft forwards that the first token takes besides its own

    @property
    def limit(self) -> int:
        return len(self.acceptance)

    def steps(self, length: int) -> int:
        """Draft forwards that a draft of `length` needs besides those that were run."""
        further = self.num_steps * max(length - self.num_seen, 0)
        return further + (self.num_first if length else 0)

    def gains(self) -> list[float]:
        """Expected tokens that each further draft slot adds: the product of acceptances so far."""
        gains, product = [], 1.0
        for acceptance in self.acceptance:
            product *= acceptance
            gains.append(product)
        return gains


@dataclass(frozen=True, slots=True)
class Prices:
    """What a row's draft costs, in tokens that could be decoded in the same time."""

    slot: float = 0.0  # of one more token to score
    step: float = 0.0  # of a draft forward, a row's share of it

    @classmethod
    def at(cls, base: Base, cost: RoundSeconds) -> Prices:
        """In rounds like `base`, where every row drafts."""
        plain_s, *_, longer_s = cost.predict_range(base.rows, base.tokens, 1 + _SLOTS, 0)
        stepped_s = cost.predict_range(base.rows, base.tokens, 1, 1)[0]
        return cls(
            slot=(longer_s - plain_s) / _SLOTS * base.rows / plain_s,
            step=(stepped_s - plain_s) / plain_s,
        )

    def worth(self, chance: RowChance) -> float:
        """Expected tokens of the best length, less its price; what offers took is spent."""
        best = gained = 0.0
        for length, gain in enumerate(chance.gains(), start=1):
            gained += gain
            price = length * self.slot + chance.steps(length) * self.step
            best = max(best, gained - price)
        return best


@dataclass(frozen=True, slots=True)
class Base:
    """The round without any draft: decoding rows with one token each, and prefill chunks."""

    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class LengthDecision:
    """Draft lengths of a round and why. Goodput is tokens per second of decoding, prefill apart."""

    lengths: tuple[int, ...]  # one per row asked for, in order
    expected_tokens: float  # emitted by these rows
    expected_s: float  # of the whole round, prefill included
    plain_goodput: float  # tokens per second with every length 0
    spec_goodput: float  # with these lengths


def fixed_lengths(limits: Sequence[int], budget: int) -> list[int]:
    """Policy FIXED: every row drafts its limit; all are cut to one length to fit the budget."""
    cap = max(limits, default=0)
    while cap and sum(min(cap, limit) for limit in limits) > budget:
        cap -= 1
    return [min(cap, limit) for limit in limits]


def best_lengths(
    rows: Sequence[RowChance],
    base: Base,
    cost: RoundSeconds,
    budget: int,
    *,
    least_gain: float = LEAST_SLOT_GAIN,
) -> list[int]:
    """Policy ADAPTIVE: the lengths of the highest goodput, of at most `budget` tokens in all.

    A row's gains never increase, so for a given number of slots the best are the largest gains of
    all rows, and one scan over them in order finds the optimum. Where drafting takes steps, the
    deepest row sets the seconds, so the scan is repeated for each depth.
    """
    slots = _slots(rows, least_gain)
    aside_s, run = _prefill_seconds(len(rows), base, cost), _num_run(rows)
    best = _Best(len(rows) / _seconds(cost, base, 0, run, aside_s), 0, 0)
    depths = {rows[row].steps(rank) for _, rank, row in slots}
    for steps in sorted(depths | {0}):
        usable = [slot for slot in slots if rows[slot[2]].steps(slot[1]) <= steps][:budget]
        seconds = cost.predict_range(base.rows, base.tokens, len(usable) + 1, run + steps)
        best = _scan(best, usable, seconds, aside_s, len(rows), steps)
    lengths = [0] * len(rows)
    chosen = (slot for slot in slots if rows[slot[2]].steps(slot[1]) <= best.steps)
    for _, (_, rank, row) in zip(range(best.num_slots), chosen, strict=False):
        lengths[row] = rank
    return lengths


def assess(
    rows: Sequence[RowChance], lengths: Sequence[int], base: Base, cost: RoundSeconds
) -> LengthDecision:
    """What these lengths promise."""
    gains = (sum(row.gains()[:length]) for row, length in zip(rows, lengths, strict=True))
    expected_tokens = len(rows) + sum(gains)
    pairs = zip(rows, lengths, strict=True)
    steps = _num_run(rows) + max((row.steps(length) for row, length in pairs), default=0)
    aside_s = _prefill_seconds(len(rows), base, cost)
    served_s = _seconds(cost, base, sum(lengths), steps, aside_s)
    return LengthDecision(
        lengths=tuple(lengths),
        expected_tokens=expected_tokens,
        expected_s=served_s + aside_s,
        plain_goodput=len(rows) / _seconds(cost, base, 0, 0, aside_s),
        spec_goodput=expected_tokens / served_s,
    )


Slot = tuple[float, int, int]
"""(expected tokens, draft position from 1, row)"""


@dataclass(frozen=True, slots=True)
class _Best:
    goodput: float
    num_slots: int
    steps: int


def _slots(rows: Sequence[RowChance], least_gain: float) -> list[Slot]:
    """All slots worth a thought, largest gain first; equal gains in order of position."""
    slots = [
        (gain, rank, row)
        for row, chance in enumerate(rows)
        for rank, gain in enumerate(chance.gains(), start=1)
        if gain >= least_gain
    ]
    slots.sort(key=lambda slot: (-slot[0], slot[1]))
    return slots


def _scan(
    best: _Best,
    slots: Sequence[Slot],
    seconds: Sequence[float],
    aside_s: float,
    tokens: float,
    steps: int,
) -> _Best:
    """Spend slots one by one and keep the best number of them."""
    for index, slot in enumerate(slots, start=1):
        tokens += slot[0]
        served_s = seconds[index] - aside_s
        if tokens > best.goodput * served_s:
            best = _Best(tokens / served_s, index, steps)
    return best


def _num_run(rows: Sequence[RowChance]) -> int:
    """Draft forwards that are spent already: owed with a draft and without."""
    return max((row.num_run for row in rows), default=0)


def _prefill_seconds(num_rows: int, base: Base, cost: RoundSeconds) -> float:
    """Seconds that prefill adds to the round. They are owed whatever is drafted, so they must not
    dilute goodput: else every round with a long prompt in it would draft too much."""
    if base.tokens == num_rows or num_rows == 0:
        return 0.0
    whole_s = cost.predict_range(base.rows, base.tokens, 1, 0)[0]
    return max(whole_s - cost.predict_range(num_rows, num_rows, 1, 0)[0], 0.0)


def _seconds(cost: RoundSeconds, base: Base, num_drafted: int, steps: int, aside_s: float) -> float:
    return cost.predict_range(base.rows, base.tokens + num_drafted, 1, steps)[0] - aside_s
