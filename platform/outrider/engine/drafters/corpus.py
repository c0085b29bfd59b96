"""Finished outputs, shared by the rows of a job: what one row wrote, another may write again."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.engine.drafters.suffix_index import BOUNDARY, LENGTH_CAP, Match, SuffixIndex


class Corpus:
    """Keeps at most `max_tokens` tokens in two generations; the older one is dropped as a whole."""

    def __init__(self, max_tokens: int, *, min_match: int, max_match: int) -> None:
        self._generation_tokens = max_tokens // 2
        self._min_match = min_match
        self._max_match = max_match
        self._young = self._new_generation()
        self._old: SuffixIndex | None = None

    def __len__(self) -> int:
        """Tokens kept, counting one boundary behind each document."""
        return len(self._young) + (len(self._old) if self._old is not None else 0)

    def learn(self, tokens: Sequence[int], start: int) -> None:
        """Remember `tokens[start:]`, an output; a few tokens before it tell when it applies."""
        start = max(start, len(tokens) - self._generation_tokens + 1)
        if self._generation_tokens == 0 or start >= len(tokens):
            return
        room = self._generation_tokens - (len(tokens) - start) - 1
        context = tokens[max(0, start - min(LENGTH_CAP, room)) : start]
        self._make_room(len(context) + len(tokens) - start + 1)
        self._young.extend_unindexed(context)
        self._young.extend(tokens[start:])
        self._young.extend_unindexed([BOUNDARY])

    def find(self, tokens: Sequence[int]) -> Match | None:
        """The longest match of the end of `tokens`; the younger generation wins a draw."""
        suffix = tokens[-LENGTH_CAP:]
        young = self._young.find(suffix)
        old = self._old.find(suffix) if self._old is not None else None
        if young is None or old is None:
            return young or old
        return old if old.length > young.length else young

    def _make_room(self, num_tokens: int) -> None:
        if len(self._young) + num_tokens > self._generation_tokens:
            self._old, self._young = self._young, self._new_generation()

    def _new_generation(self) -> SuffixIndex:
        return SuffixIndex(
            self._generation_tokens, min_match=self._min_match, max_match=self._max_match
        )
