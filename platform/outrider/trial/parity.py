"""Exactness: what a contender said against what its baseline said to the same case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from outrider.core import Completion, FinishReason, Rule
from outrider.engine.parity import Verdict, compare
from outrider.trial.case import Case
from outrider.trial.observation import Observation
from outrider.trial.plan import Batch
from outrider.trial.seat import Seat
from outrider.trial.side import Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Tells equal answers, near ties (`near_tie` logits) and mismatches of one batch."""

    batch: Batch
    near_tie: float

    def compared(
        self, contender: Seat, baseline: Seat, ours: Sequence[Observation], theirs: Plainly
    ) -> list[Observation]:
        """`ours` with their parity. Under rule ratio only greedy answers must be equal."""
        must_equal = contender.contender.rule is Rule.COUPLED
        cases = {case.name: case for case in self.batch.cases}
        return [
            replace(seen, parity=self._verdict(cases[seen.case], seen, theirs, baseline).value)
            if must_equal or cases[seen.case].params.is_greedy
            else seen
            for seen in ours
        ]

    def _verdict(self, case: Case, seen: Observation, theirs: Plainly, baseline: Seat) -> Verdict:
        plain = theirs.get(seen.case)
        if plain is None or plain.error or seen.error:
            return Verdict.NOT_COMPARED  # failures are counted as such, not as differences
        found = compare(case.request(()), _answer(plain), _answer(seen), near_tie=self.near_tie)
        if found.verdict is not Verdict.MISMATCH or found.position is None:
            return found.verdict
        try:
            return self._at_difference(case, seen, plain, found.position, baseline)
        except Lost:
            return Verdict.NOT_COMPARED

    def _at_difference(
        self, case: Case, seen: Observation, plain: Observation, position: int, baseline: Seat
    ) -> Verdict:
        """Greedy or sampled, a choice that rounding may turn is a near tie."""
        if position >= min(len(seen.token_ids), len(plain.token_ids)):
            return Verdict.MISMATCH  # one ends where the other goes on
        rivals = plain.token_ids[position], seen.token_ids[position]
        margin = baseline.margin(case, plain.token_ids[:position], rivals)
        return Verdict.NEAR_TIE if margin < self.near_tie else Verdict.MISMATCH


Plainly = Mapping[str, Observation]
"""What the baseline said, by the name of the case."""


def _answer(seen: Observation) -> Completion:
    return Completion(
        request_id=seen.case,
        token_ids=seen.token_ids,
        text="",  # follows from the tokens
        finish_reason=FinishReason(seen.finish_reason),
    )
