"""Where the end of a text was seen before: hash chains over its n-grams, as in LZ77 coders.

For every n from `min_match` to `max_match` a table tells where an n-gram ended last, and a chain
leads from there to the times before. Adding a token costs O(max_match) whatever the length of the
text. Tables are flat arrays of 32-bit integers whose untouched pages cost nothing, so that a
large index weighs about 80 bytes per token where Python dictionaries would weigh a kilobyte.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

NEAR = 40  # tokens around a place that count as close to it
AMBIGUOUS = 2  # tokens; matches this short stand in too many places to be told apart by counting
LENGTH_CAP = 32  # tokens; a match is not measured further back than this
MAX_CANDIDATES = 8  # earlier occurrences that are compared
MAX_CHAIN = 64  # links followed, counting those of other n-grams in the same slot
BOUNDARY = -1  # stands between documents; equals no token
_MULTIPLIER = 0x9E3779B1  # Knuth's multiplicative hash
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Match:
    """The last `length` tokens of a row also stand before position `end` of `index`'s text."""

    length: int  # tokens, at most LENGTH_CAP; 0 for a place that was not found by its tokens
    end: int
    index: SuffixIndex
    is_near: bool = False  # chosen among equals for being close to where the caller was reading

    def read(self, limit: int) -> list[int]:
        """What followed, up to `limit` tokens or the end of its document."""
        tokens = self.index.text[self.end : self.end + limit].tolist()
        return tokens[: tokens.index(BOUNDARY)] if BOUNDARY in tokens else tokens

    def copy(self, limit: int) -> list[int]:
        """What follows if the text goes on as it did: `limit` tokens.

        Where the copy reaches the end of the text it goes on reading what it has written, as an
        overlapping LZ77 copy does: a match one token back repeats that token for ever.
        """
        tokens = self.index.text[self.end : self.end + limit].tolist()
        period = len(self.index.text) - self.end
        while len(tokens) < limit:
            tokens.append(tokens[-period])
        return tokens


class SuffixIndex:
    """A growing text of at most `capacity` tokens that finds earlier occurrences of a suffix."""

    def __init__(self, capacity: int, *, min_match: int, max_match: int) -> None:
        self.text = array("i")
        self.capacity = capacity
        self._min_match = min_match
        self._max_match = max_match
        bits = max(8, (2 * capacity).bit_length())
        self._shift = 32 - bits
        orders = range(min_match, max_match + 1)
        # [n - min_match][slot]: where an n-gram of that slot ended last; 0: never.
        self._last = [np.zeros(1 << bits, np.int32).data for _ in orders]
        # [n - min_match][end]: where one of the same slot ended before that; 0: never.
        self._before = [np.zeros(capacity + 1, np.int32).data for _ in orders]

    def __len__(self) -> int:
        return len(self.text)

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens; each becomes what followed the n-grams that end before it."""
        for token in tokens:
            self._learn_end()
            self.text.append(token)

    def extend_unindexed(self, tokens: Sequence[int]) -> None:
        """Add tokens that lengthen matches behind them, and are never offered themselves."""
        self.text.extend(tokens)

    def find(self, suffix: Sequence[int], near: int | None = None) -> Match | None:
        """The best earlier occurrence of the longest possible end of `suffix`, or None.

        Longest match first; among equals of an ambiguous length the one closest to position
        `near`, else the continuation seen most often, then the most recent. Only the last
        MAX_CANDIDATES occurrences of the n-gram that was found are weighed.
        """
        slots = self._slots(suffix)
        for order in range(len(slots) - 1, -1, -1):
            found = self._occurrences(order, slots[order], suffix)
            if found:
                return self._nearest(found, near) or self._best(found)
        return None

    def _learn_end(self) -> None:
        end = len(self.text)
        slots = self._slots(self.text)
        for slot, last, before in zip(slots, self._last, self._before, strict=False):
            before[end] = last[slot]
            last[slot] = end

    def _slots(self, text: Sequence[int]) -> list[int]:
        """The table slot of each n-gram that ends `text`, from `min_match` up."""
        code, slots = 0, []
        for depth in range(1, min(self._max_match, len(text)) + 1):
            token = text[-depth]
            if token == BOUNDARY:
                break
            code = ((code ^ token) + 1) * _MULTIPLIER & _MASK
            if depth >= self._min_match:
                slots.append(code >> self._shift)
        return slots

    def _occurrences(self, order: int, slot: int, suffix: Sequence[int]) -> list[tuple[int, int]]:
        """(match length, end) of true occurrences, most recent first."""
        found = []
        for end in self._chain(order, slot):
            length = self._shared(end, suffix)
            if length >= self._min_match + order:  # else another n-gram in the same slot
                found.append((length, end))
                if len(found) == MAX_CANDIDATES:
                    break
        return found

    def _chain(self, order: int, slot: int) -> Iterator[int]:
        end, before = self._last[order][slot], self._before[order]
        for _ in range(MAX_CHAIN):
            if not end:
                return
            yield end
            end = before[end]

    def _shared(self, end: int, suffix: Sequence[int]) -> int:
        """How many tokens before `end` equal the end of `suffix`."""
        text, length = self.text, 0
        limit = min(LENGTH_CAP, end, len(suffix))
        while length < limit and text[end - 1 - length] == suffix[-1 - length]:
            length += 1
        return length

    def _nearest(self, found: list[tuple[int, int]], near: int | None) -> Match | None:
        longest = max(length for length, _ in found)
        if near is None or longest > AMBIGUOUS:
            return None
        ends = [end for length, end in found if length == longest and abs(end - near) <= NEAR]
        if not ends:
            return None
        closest = min(ends, key=lambda end: (abs(end - near), end))
        return Match(longest, closest, self, is_near=True)

    def _best(self, found: list[tuple[int, int]]) -> Match:
        longest = max(length for length, _ in found)
        ends = [end for length, end in found if length == longest]
        votes = Counter(self.text[end] for end in ends)
        # max() keeps the first of equals: the most recent.
        return Match(longest, max(ends, key=lambda end: votes[self.text[end]]), self)
