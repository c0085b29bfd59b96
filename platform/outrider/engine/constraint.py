"""Structured output: which tokens may come next, whatever language it was asked for in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.core import Constraint, ConstraintKind, UserError

Allowed = NDArray[np.bool_]  # [vocab]

FIELD = {
    ConstraintKind.JSON_OBJECT: "response_format",
    ConstraintKind.JSON_SCHEMA: "response_format",
    ConstraintKind.REGEX: "regex",
    ConstraintKind.GRAMMAR: "grammar",
}
"""The request's field that a constraint came in."""


class MatcherError(Exception):
    """A constraint turned out too large while it was followed: its row can't go on."""


class Matcher(Protocol):
    """Follows one row's committed tokens. Looking behind a draft leaves it where it was.

    What may follow depends on the tokens before it only, never on what was looked at.
    """

    def allowed(self, drafted: Sequence[int]) -> Allowed:
        """What may follow the committed tokens and `drafted`; at least one token, EOS included
        where the output may end. Everything, behind an EOS. Raises MatcherError.
        """
        ...

    def is_allowed(self, drafted: Sequence[int], token: int) -> bool:
        """`allowed(drafted)[token]`, for less. Raises MatcherError."""
        ...

    def num_allowed(self, drafted: Sequence[int]) -> int:
        """How many of `drafted`, from the first on, may follow the committed tokens."""
        ...

    def forced(self) -> list[int]:
        """Tokens that come next whatever the model says; none where there is a choice."""
        ...

    def commit(self, token: int) -> None: ...


class ConstraintCompiler(Protocol):
    """Any thread may call it."""

    def check(self, constraint: Constraint) -> None:
        """Compile it and keep it. Raises UserError, naming the field, where that can't be done."""
        ...

    def open(self, constraint: Constraint) -> Matcher:
        """A matcher at its beginning, at once where `check` was called before."""
        ...


class NoConstraints:
    """Refuses every constraint."""

    def check(self, constraint: Constraint) -> None:
        field = FIELD[constraint.kind]
        raise UserError(f"{field}: structured output is not available with this tokenizer")

    def open(self, constraint: Constraint) -> Matcher:
        raise AssertionError("a constraint that `check` refuses is never opened")
