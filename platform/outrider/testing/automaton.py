"""Constraints by automaton: structured output without a grammar library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outrider.core import Constraint, UserError
from outrider.engine.constraint import Allowed


@dataclass(frozen=True)
class Automaton:
    """Which token leads from which state to which; the first state is 0."""

    edges: Mapping[int, Mapping[int, int]]
    accepting: frozenset[int]


class AutomatonCompiler:
    """Constraints whose text names one of `automata`."""

    def __init__(self, automata: Mapping[str, Automaton], *, vocab_size: int, eos_id: int) -> None:
        self._automata = automata
        self._vocab_size = vocab_size
        self._eos_id = eos_id

    def check(self, constraint: Constraint) -> None:
        if constraint.text not in self._automata:
            raise UserError(f"grammar: there is no {constraint.text!r}")

    def open(self, constraint: Constraint) -> AutomatonMatcher:
        return AutomatonMatcher(self._automata[constraint.text], self._vocab_size, self._eos_id)


class AutomatonMatcher:
    """One row's state."""

    def __init__(self, automaton: Automaton, vocab_size: int, eos_id: int) -> None:
        self._automaton = automaton
        self._vocab_size = vocab_size
        self._eos_id = eos_id
        self.state: int | None = 0  # None: behind EOS

    def allowed(self, drafted: Sequence[int]) -> Allowed:
        state = self.state
        for token in drafted:
            state = None if token == self._eos_id or state is None else self._next(state)[token]
        mask = np.full(self._vocab_size, state is None)
        if state is not None:
            mask[list(self._next(state))] = True
            mask[self._eos_id] = state in self._automaton.accepting or not self._next(state)
        return mask

    def is_allowed(self, drafted: Sequence[int], token: int) -> bool:
        return bool(self.allowed(drafted)[token])

    def forced(self) -> list[int]:
        """The only way on, for as long as there is one (it may be a circle)."""
        run: list[int] = []
        while len(run) < self._vocab_size and self.state is not None:
            ways = np.flatnonzero(self.allowed(run))
            if ways.size != 1 or ways[0] == self._eos_id:
                break
            run.append(int(ways[0]))
        return run

    def num_allowed(self, drafted: Sequence[int]) -> int:
        for index, token in enumerate(drafted):
            if not self.allowed(drafted[:index])[token]:
                return index
        return len(drafted)

    def commit(self, token: int) -> None:
        if self.state is not None:
            self.state = None if token == self._eos_id else self._next(self.state)[token]

    def _next(self, state: int) -> Mapping[int, int]:
        return self._automaton.edges.get(state, {})
