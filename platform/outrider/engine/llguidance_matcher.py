"""Constraints by llguidance: JSON schemas, regular expressions and Lark grammars."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer

from outrider.core import Constraint, ConstraintKind, UserError
from outrider.engine.constraint import FIELD, Allowed

MOST_KEPT = 64  # compiled constraints
ANY_OBJECT = '{"type": "object"}'
# Written as Python's json does: free whitespace invites a small model to go on with it for ever.
JSON_OPTIONS: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}


class LlguidanceCompiler:
    """For one tokenizer. What it takes from it (about a second) is taken at the first use."""

    def __init__(
        self, tokenizer_json: Callable[[], str], *, vocab_size: int, eos_ids: Sequence[int]
    ) -> None:
        """`tokenizer_json`: the tokenizer in the format of Hugging Face's tokenizer.json."""
        self._tokenizer_json = tokenizer_json
        self._vocab_size = vocab_size
        self._eos_ids = list(eos_ids)
        self._tokenizer: LLTokenizer | None = None
        self._kept: OrderedDict[Constraint, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, constraint: Constraint) -> None:
        self._compiled(constraint)

    def open(self, constraint: Constraint) -> LlguidanceMatcher:
        fresh = self._compiled(constraint).deep_copy()
        return LlguidanceMatcher(fresh, self._vocab_size, frozenset(self._eos_ids))

    def _compiled(self, constraint: Constraint) -> LLMatcher:
        with self._lock:
            if constraint not in self._kept:
                self._kept[constraint] = self._compile(constraint)
            self._kept.move_to_end(constraint)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[constraint]

    def _compile(self, constraint: Constraint) -> LLMatcher:
        if self._tokenizer is None:
            self._tokenizer = LLTokenizer(self._tokenizer_json(), eos_token=self._eos_ids)
        try:
            matcher = LLMatcher(self._tokenizer, _grammar(constraint), log_level=0)
        except ValueError as error:
            raise _refused(constraint, str(error)) from error
        if matcher.is_error():
            raise _refused(constraint, matcher.get_error())
        return matcher


class LlguidanceMatcher:
    """One row's place in a compiled constraint."""

    def __init__(self, matcher: LLMatcher, vocab_size: int, eos_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._eos_ids = eos_ids

    def allowed(self, drafted: Sequence[int]) -> Allowed:
        if self._matcher.is_stopped() or any(token in self._eos_ids for token in drafted):
            return self._behind_the_end(drafted)
        taken = self._matcher.try_consume_tokens(list(drafted))
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        self._matcher.rollback(taken)
        if taken < len(drafted):
            raise AssertionError("a draft is cut to what is allowed before it is scored")
        found: Allowed = np.unpackbits(bits, bitorder="little")[: self._vocab_size].astype(bool)
        return found if found.any() else self._only_eos()

    def num_allowed(self, drafted: Sequence[int]) -> int:
        return self._matcher.validate_tokens(list(drafted))

    def commit(self, token: int) -> None:
        self._matcher.consume_token(token)

    def _behind_the_end(self, drafted: Sequence[int]) -> Allowed:
        """Only EOS where the text is complete; behind an EOS nothing is ever emitted."""
        if any(token in self._eos_ids for token in drafted):
            return np.ones(self._vocab_size, dtype=bool)
        return self._only_eos()

    def _only_eos(self) -> Allowed:
        mask = np.zeros(self._vocab_size, dtype=bool)
        mask[[token for token in self._eos_ids if token < self._vocab_size]] = True
        return mask


def _grammar(constraint: Constraint) -> str:
    if constraint.kind is ConstraintKind.REGEX:
        return LLMatcher.grammar_from_regex(constraint.text)
    if constraint.kind is ConstraintKind.GRAMMAR:
        return LLMatcher.grammar_from_lark(constraint.text)
    schema = constraint.text if constraint.kind is ConstraintKind.JSON_SCHEMA else ANY_OBJECT
    return LLMatcher.grammar_from_json_schema(schema, overrides=JSON_OPTIONS)


def _refused(constraint: Constraint, why: str) -> UserError:
    line = " ".join(why.split())[:300]
    return UserError(f"{FIELD[constraint.kind]}: it can't be followed: {line}")
