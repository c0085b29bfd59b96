"""Constraints by llguidance: JSON schemas, regular expressions and Lark grammars."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from outrider.core import Constraint, ConstraintKind, UserError
from outrider.engine.constraint import FIELD, Allowed, MatcherError

MOST_KEPT = 32  # compiled constraints
ANY_OBJECT = '{"type": "object"}'
# Written as Python's json does: free whitespace invites a small model to go on with it for ever.
JSON_OPTIONS: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
MOST_LEXER_STATES = 50_000  # of one constraint; 1 to 2 kB each


class LlguidanceCompiler:
    """For one tokenizer; without one that llguidance reads, every constraint is refused."""

    def __init__(
        self,
        tokenizer_json: Callable[[], str],
        *,
        vocab_size: int,
        eos_ids: Sequence[int],
        limits: LLParserLimits | None = None,
    ) -> None:
        """`tokenizer_json`: the tokenizer in the format of Hugging Face's tokenizer.json.

        Reading it takes about a second for 50,000 tokens, and no other thread runs meanwhile: it
        is done here, before there are any requests.
        """
        self._vocab_size = vocab_size
        self._eos_ids = sorted(token for token in eos_ids if token < vocab_size)
        self._limits = limits or LLParserLimits(
            max_lexer_states=MOST_LEXER_STATES, verbose_errors=False
        )
        self._tokenizer: LLTokenizer | None = None
        self._why_not = "its model cannot say an EOS"
        self._kept: OrderedDict[Constraint, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()
        if self._eos_ids:
            self._read(tokenizer_json)

    def check(self, constraint: Constraint) -> None:
        self._compiled(constraint)

    def open(self, constraint: Constraint) -> LlguidanceMatcher:
        fresh = self._compiled(constraint).deep_copy()
        return LlguidanceMatcher(fresh, self._vocab_size, self._eos_ids, FIELD[constraint.kind])

    def _read(self, tokenizer_json: Callable[[], str]) -> None:
        try:
            self._tokenizer = LLTokenizer(tokenizer_json(), eos_token=self._eos_ids)
        except (UserError, ValueError) as error:
            self._why_not = _in_one_line(str(error))

    def _compiled(self, constraint: Constraint) -> LLMatcher:
        """Compiled outside the lock: the decode thread, for which it is there, never waits."""
        with self._lock:
            found = self._kept.get(constraint)
        compiled = self._compile(constraint) if found is None else found
        with self._lock:
            self._kept[constraint] = compiled
            self._kept.move_to_end(constraint)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return compiled

    def _compile(self, constraint: Constraint) -> LLMatcher:
        field = FIELD[constraint.kind]
        if self._tokenizer is None:
            raise UserError(
                f"{field}: structured output is not available with this tokenizer: {self._why_not}"
            )
        try:
            matcher = LLMatcher(
                self._tokenizer, _grammar(constraint), log_level=0, limits=self._limits
            )
        except ValueError as error:
            raise _refused(field, str(error)) from error
        if matcher.is_error():
            raise _refused(field, matcher.get_error())
        return matcher


class LlguidanceMatcher:
    """One row's place in a compiled constraint.

    Where the library's canonical tokens are forced, its mask holds the first of them only; where
    nothing is, `validate_tokens` says the same as the mask.
    """

    def __init__(
        self, matcher: LLMatcher, vocab_size: int, eos_ids: Sequence[int], field: str
    ) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._eos_ids = list(eos_ids)
        self._field = field

    def allowed(self, drafted: Sequence[int]) -> Allowed:
        if self._has_ended(drafted):
            return np.ones(self._vocab_size, dtype=bool)
        taken = self._matcher.try_consume_tokens(list(drafted))
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        self._back(taken, len(drafted))
        found: Allowed = np.unpackbits(bits, bitorder="little")[: self._vocab_size].astype(bool)
        return found if found.any() else self._only_eos()

    def is_allowed(self, drafted: Sequence[int], token: int) -> bool:
        if self._has_ended(drafted):
            return True
        taken = self._matcher.try_consume_tokens(list(drafted))
        answer = self._may_follow(token)
        self._back(taken, len(drafted))
        return answer

    def num_allowed(self, drafted: Sequence[int]) -> int:
        taken = 0
        for token in drafted:
            if not self._may_follow(token):
                break
            if token in self._eos_ids:
                self._matcher.rollback(taken)
                return taken + 1
            self._matcher.consume_token(token)
            taken += 1
        self._matcher.rollback(taken)
        return taken

    def forced(self) -> list[int]:
        return self._matcher.compute_ff_tokens()

    def commit(self, token: int) -> None:
        self._matcher.consume_token(token)

    def _has_ended(self, drafted: Sequence[int]) -> bool:
        """Behind an EOS nothing is ever emitted."""
        return any(token in self._eos_ids for token in drafted)

    def _may_follow(self, token: int) -> bool:
        if self._matcher.is_stopped():
            return token in self._eos_ids
        forced = self._matcher.compute_ff_tokens()
        return token == forced[0] if forced else self._matcher.validate_tokens([token]) == 1

    def _back(self, taken: int, num_drafted: int) -> None:
        """To the committed tokens. In an error the library would allow EOS, as if all were said."""
        if self._matcher.is_error():
            raise MatcherError(
                f"{self._field}: it grew too large while it was followed: "
                + _in_one_line(self._matcher.get_error())
            )
        if taken < num_drafted:
            raise AssertionError("only what is allowed is ever looked behind")
        self._matcher.rollback(taken)

    def _only_eos(self) -> Allowed:
        mask = np.zeros(self._vocab_size, dtype=bool)
        mask[self._eos_ids] = True
        return mask


def _grammar(constraint: Constraint) -> str:
    if constraint.kind is ConstraintKind.REGEX:
        return LLMatcher.grammar_from_regex(constraint.text)
    if constraint.kind is ConstraintKind.GRAMMAR:
        return LLMatcher.grammar_from_lark(constraint.text)
    schema = constraint.text if constraint.kind is ConstraintKind.JSON_SCHEMA else ANY_OBJECT
    return LLMatcher.grammar_from_json_schema(schema, overrides=JSON_OPTIONS)


def _refused(field: str, why: str) -> UserError:
    return UserError(f"{field}: it can't be followed: {_in_one_line(why)}")


def _in_one_line(why: str) -> str:
    return " ".join(why.replace("<non-verbose/>", "").split())[:300]
