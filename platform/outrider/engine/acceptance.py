"""How likely drafted tokens are to be accepted: learnt per class of draft position, and per row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outrider.core import add_by_position
from outrider.engine.drafters import Offer

_CLASS_DISCOUNT = 0.995  # per observation of a class: it remembers about 200
_CLASS_STRENGTH = 4.0  # observations that the initial guess weighs
_LEAST, _MOST = 0.005, 0.995  # no class is ever held to be hopeless or certain
_LARGEST_SHIFT = 5.0  # log odds that a row may differ from its class
_SHARPEST = 0.25  # information of one coin toss of even odds on its log odds

_UNKNOWN = 0.5
_BY_NAME = {"model": 0.6, "grammar": _MOST}
_NGRAM = (0.2, 0.3, 0.42, 0.52, 0.6, 0.66, 0.71, 0.76, 0.8)  # by length of the match

_HEAD = (0.2, 0.35, 0.5, 0.65, 0.75, 0.85, 0.5)  # by how sure it is; the last: nobody looked


def initial_guess(name: str, level: int) -> float:
    """Acceptance assumed for a class that was never tested; optimistic enough to be tried."""
    if name == "ngram":
        return _NGRAM[min(max(level, 0), len(_NGRAM) - 1)]
    if name == "head":
        return _HEAD[level % len(_HEAD)]
    return _BY_NAME.get(name, _UNKNOWN)


@dataclass(slots=True)
class ClassRecord:
    """Discounted Beta counts of one (drafter name, level)."""

    accepts: float
    rejects: float
    log_odds: float  # of the mean, kept because it is read at every position of every round
    last_round: int = -(10**9)  # when it was last tested; long ago: never

    @property
    def mean(self) -> float:
        return self.accepts / (self.accepts + self.rejects)

    def add(self, accepted: bool, round_: int) -> None:  # noqa: FBT001 (the observation itself)
        self.accepts = _CLASS_DISCOUNT * self.accepts + accepted
        self.rejects = _CLASS_DISCOUNT * self.rejects + (not accepted)
        self.log_odds = _log_odds(self.mean)
        self.last_round = round_


@dataclass(slots=True)
class RowShift:
    """How far a row's log odds lie from its classes'; `information` is that of the estimate."""

    log_odds: float = 0.0
    information: float = 0.0  # without the prior's


RowAcceptance = dict[str, RowShift]
"""Drafter name -> shift, for one row."""


@dataclass(slots=True)
class AcceptanceModel:
    """Acceptance of the deployment by class, and of each row as a shift on top.

    A row's shift is the one-parameter logistic filter: log odds of acceptance = class + shift,
    with a normal prior on the shift that weighs `prior_strength` even coin tosses. Only tested
    positions count: the positions behind a rejection say nothing (censoring).
    """

    prior_strength: float = 8.0  # observations
    discount: float = 0.995  # per observation of a row
    classes: dict[tuple[str, int], ClassRecord] = field(default_factory=dict)
    position_attempts: list[int] = field(default_factory=list)  # [draft position] tested
    position_accepts: list[int] = field(default_factory=list)  # [draft position] accepted

    def expect(self, row: RowAcceptance, offer: Offer) -> list[float]:
        """P(position i is accepted | all before it are) for each offered position."""
        shift = row[offer.name].log_odds if offer.name in row else 0.0
        return [
            1.0 / (1.0 + math.exp(-self._record(offer.name, level).log_odds - shift))
            for level in offer.levels
        ]

    def observe(
        self, row: RowAcceptance, offer: Offer, evaluated: int, accepted: int, round_: int = 0
    ) -> None:
        """Learn from one block: `accepted` tokens, then a rejection where evaluated > accepted."""
        outcomes = [True] * accepted + [False] * (evaluated > accepted)
        levels = offer.levels[: len(outcomes)]
        if not levels:
            return
        self._shift(row, offer, outcomes)
        for level, outcome in zip(levels, outcomes, strict=False):
            self._record(offer.name, level).add(outcome, round_)
        add_by_position(self.position_attempts, [1] * len(outcomes))
        add_by_position(self.position_accepts, [1] * accepted)

    def last_tested(self, name: str, level: int) -> int:
        """The round in which this class was last tested; far below 0: never."""
        return self._record(name, level).last_round

    @property
    def position_ratios(self) -> list[float]:
        """Accepts over attempts at each draft position."""
        pairs = zip(self.position_accepts, self.position_attempts, strict=False)
        ratios = [accepts / attempts for accepts, attempts in pairs]
        return ratios + [0.0] * (len(self.position_attempts) - len(ratios))

    def to_dict(self) -> dict[str, object]:
        return {
            "classes": {
                f"{name}:{level}": {
                    "mean": record.mean,
                    "observations": record.accepts + record.rejects,
                }
                for (name, level), record in sorted(self.classes.items())
            },
            "position_attempts": list(self.position_attempts),
            "position_accepts": list(self.position_accepts),
        }

    def _record(self, name: str, level: int) -> ClassRecord:
        record = self.classes.get((name, level))
        if record is None:
            guess = initial_guess(name, level)
            record = ClassRecord(
                guess * _CLASS_STRENGTH, (1.0 - guess) * _CLASS_STRENGTH, _log_odds(guess)
            )
            self.classes[name, level] = record
        return record

    def _shift(self, row: RowAcceptance, offer: Offer, outcomes: Sequence[bool]) -> None:
        """One filter step for the whole block (the score over the information)."""
        expected = self.expect(row, Offer(offer.name, offer.levels[: len(outcomes)]))
        shift = row.setdefault(offer.name, RowShift())
        kept = self.discount ** len(expected)
        prior = self.prior_strength * _SHARPEST
        shift.information = kept * shift.information + sum(a * (1.0 - a) for a in expected)
        score = sum(outcomes[: len(expected)]) - sum(expected)
        pull = (1.0 - kept) * prior * shift.log_odds  # what is forgotten goes back to the prior
        moved = shift.log_odds + (score - pull) / (prior + shift.information)
        shift.log_odds = min(max(moved, -_LARGEST_SHIFT), _LARGEST_SHIFT)


def describe_row(row: RowAcceptance) -> Mapping[str, float]:
    """Drafter name -> shift in log odds."""
    return {name: shift.log_odds for name, shift in row.items()}


def _log_odds(mean: float) -> float:
    bounded = min(max(mean, _LEAST), _MOST)
    return math.log(bounded / (1.0 - bounded))
