"""A scored block of one row: the target's view of each position, as plain decoding would see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from outrider.core import TokenLogprob
from outrider.engine.drafters import Proposal
from outrider.engine.noise import Purpose, uniform
from outrider.engine.row import Row
from outrider.engine.sampling import History, Logits, Probs, token_logprob
from outrider.engine.verify import Outcome, accept_by_ratio, accept_while_equal


class NotFiniteError(Exception):
    """The target gave NaN or infinity at a tested position."""


class ScoredBlock:
    """`logits` [k + 1, vocab] and their argmax `best` [k + 1] for the k drafted tokens of a row."""

    def __init__(
        self, row: Row, proposal: Proposal, logits: NDArray[np.floating], best: NDArray[np.intp]
    ) -> None:
        self._row = row
        self._drafted = proposal.tokens
        self._q = proposal.q
        self._logits = logits
        self._best = best
        self._start = len(row.tokens)  # position of the block's first token in the row

    def verify(self) -> Outcome:
        """Accept the valid prefix and draw the token behind it (stages 3 and 4)."""
        if self._row.chooser.is_deterministic:
            return accept_while_equal(self._choose, self._drafted)
        q = None if self._q is None else list(self._q.double().numpy(force=True))
        return accept_by_ratio(
            self._distribution, self._drafted, q, self._test, self._draw, self._resample
        )

    def logprobs(self, tokens: Sequence[int]) -> list[TokenLogprob]:
        """One entry for each emitted token; empty where the request wants none."""
        top = self._row.request.params.top_logprobs
        if top is None:
            return []
        return [token_logprob(self._logits[i], token, top) for i, token in enumerate(tokens)]

    def raw_probabilities(self) -> tuple[float, ...]:
        """The raw target's probability of each drafted token, for the trace."""
        return tuple(
            float(np.exp(token_logprob(self._logits[i], token, 0).logprob))
            for i, token in enumerate(self._drafted)
        )

    def _choose(self, index: int) -> int:
        history = self._history(index)
        chooser = self._row.chooser
        logits = self._finite(index)
        best = int(self._best[index])
        if chooser.is_plain_argmax(history.num_output) and self._may_follow(index, best):
            return best
        return chooser.choose(logits, self._constrained(history, index), self._start + index)

    def _distribution(self, index: int) -> Probs:
        history = self._constrained(self._history(index), index)
        return self._row.chooser.distribution(self._finite(index), history)

    def _finite(self, index: int) -> Logits:
        # numpy's argmax stops at the first NaN, so the value there tells of any in the row.
        logits: Logits = self._logits[index]
        if not np.isfinite(logits[self._best[index]]):
            raise NotFiniteError(f"token {self._start + index}")
        return logits

    def _history(self, index: int) -> History:
        history = self._row.history
        if self._row.request.params.has_penalties:
            return history.after(self._drafted[:index])
        # Only the length is looked at.
        return History(frozenset(), Counter(), history.num_output + index)

    def _may_follow(self, index: int, token: int) -> bool:
        matcher = self._row.matcher
        return matcher is None or matcher.is_allowed(self._drafted[:index], token)

    def _constrained(self, history: History, index: int) -> History:
        if self._row.matcher is not None:
            history.allowed = self._row.matcher.allowed(self._drafted[:index])
        return history

    def _test(self, index: int) -> float:
        return uniform(self._row.request.params.seed, self._start + index, Purpose.ACCEPT)

    def _draw(self, probs: Probs, index: int) -> int:
        return self._row.chooser.draw(probs, self._start + index, Purpose.SAMPLE)

    def _resample(self, probs: Probs, index: int) -> int:
        return self._row.chooser.draw(probs, self._start + index, Purpose.RESAMPLE)
