"""Successive halving: who goes on to the next rung, and on how many prompts. Pure.

After Jamieson and Talwalkar, "Non-stochastic best arm identification" (2016): all candidates on a
few prompts, a share of them on more, until the prompts are used up.

1. Whose requests fail, or whose answers are not plain decoding's, is dropped: exactness comes
   before speed. So is whoever is slower than plain decoding with its whole
   interval, if that is of enough pairs: more prompts would only cost more.
2. Of the others a share `keep_ratio` goes on, the fastest first; at least one, and fewer than
   there were. Equal ones stay in the order given, the simpler first.
3. The next rung has 1 / `keep_ratio` times as many prompts. One that is left alone goes to all of
   them at once: what is recommended was measured on everything.
4. The last rung has all prompts: its fastest wins, unless plain decoding is as fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from outrider.trial.record import Ratio

MIN_PAIRS = 6  # a bootstrap of fewer covers far less than it says: nobody is dropped on it alone


class Fate(StrEnum):
    """What a rung decides of a candidate."""

    KEPT = "kept"  # goes on; in the last rung: is recommended
    FAILED = "failed"  # its requests fail
    WRONG = "wrong"  # its answers differ from plain decoding's, near ties apart
    SLOWER = "slower"  # surely slower than plain decoding
    NO_GAIN = "no gain"  # in the last rung: not faster than plain decoding
    BEHIND = "behind"  # others are faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a candidate reached in a rung, earlier rungs' prompts included."""

    speedup: Ratio | None  # over plain decoding; None: nothing was answered
    tokens_per_s: float = 0.0
    failure_ratio: float = 0.0
    num_mismatches: int = 0  # answers that differ from plain decoding's, near ties apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """Who is measured, and on how many prompts."""

    number: int  # from 0
    num_prompts: int
    candidates: tuple[str, ...]  # in the order given


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """The rules of one search. `keep_ratio` is below 1."""

    keep_ratio: float
    first_prompts: int
    all_prompts: int
    max_failure_ratio: float = 0.0
    max_mismatches: int = 0

    def first(self, candidates: Sequence[str]) -> Rung:
        return self._rung(0, self.first_prompts, tuple(candidates))

    def is_last(self, rung: Rung) -> bool:
        return rung.num_prompts == self.all_prompts

    def fates(self, rung: Rung, scores: Mapping[str, Score]) -> dict[str, Fate]:
        """In the order of the rung's candidates."""
        found = {name: self._alone(scores[name], is_last=self.is_last(rung)) for name in scores}
        able = [name for name in rung.candidates if found[name] is Fate.KEPT]
        fastest = sorted(able, key=lambda name: -_speedup(scores[name]))  # stable: ties in order
        for name in fastest[self._num_kept(rung) :]:
            found[name] = Fate.BEHIND
        return {name: found[name] for name in rung.candidates}

    def after(self, rung: Rung, fates: Mapping[str, Fate]) -> Rung | None:
        """None where the search is over: plain decoding won, or the last rung is done."""
        kept = tuple(name for name in rung.candidates if fates[name] is Fate.KEPT)
        if not kept or self.is_last(rung):
            return None
        return self._rung(rung.number + 1, math.ceil(rung.num_prompts / self.keep_ratio), kept)

    def _rung(self, number: int, num_prompts: int, candidates: tuple[str, ...]) -> Rung:
        wanted = num_prompts if len(candidates) > 1 else self.all_prompts
        return Rung(number=number, num_prompts=min(wanted, self.all_prompts), candidates=candidates)

    def _alone(self, score: Score, *, is_last: bool) -> Fate:
        """Without a look at the others."""
        if score.speedup is None or score.failure_ratio > self.max_failure_ratio:
            return Fate.FAILED
        if score.num_mismatches > self.max_mismatches:
            return Fate.WRONG
        if score.speedup.high < 1.0 and score.speedup.num_pairs >= MIN_PAIRS:
            return Fate.SLOWER
        return Fate.NO_GAIN if is_last and score.speedup.value <= 1.0 else Fate.KEPT

    def _num_kept(self, rung: Rung) -> int:
        if self.is_last(rung):
            return 1
        num = len(rung.candidates)
        return min(num - 1, math.ceil(num * self.keep_ratio))


def winner(fates: Mapping[str, Fate]) -> str | None:
    """Of the rung that ended a search. None: plain decoding."""
    return next((name for name, fate in fates.items() if fate is Fate.KEPT), None)


def _speedup(score: Score) -> float:
    return score.speedup.value if score.speedup else 0.0
