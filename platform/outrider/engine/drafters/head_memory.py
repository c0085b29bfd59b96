"""What the head drafter knows of one row: the features it has not read yet, and its KV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import torch

from outrider.engine.head.kv import HeadKV


@dataclass(frozen=True, slots=True)
class Chunk:
    """Features of neighbouring tokens, as one forward of the target told them."""

    position: int  # of the first token in the row
    tokens: Sequence[int]  # [n] what the target was fed
    features: torch.Tensor  # [n, F]

    @property
    def end(self) -> int:
        return self.position + len(self.tokens)

    def part(self, begin: int, end: int) -> Chunk:
        """What stands at positions begin, ..., end - 1."""
        own = slice(max(begin - self.position, 0), max(end - self.position, 0))
        return Chunk(self.position + own.start, self.tokens[own], self.features[own])


@dataclass(frozen=True, slots=True)
class Look:
    """What the head makes of the first draft position: it depends on the prefix alone."""

    num_tokens: int  # of the row when it was made
    logits: torch.Tensor  # [V_d]
    state: torch.Tensor  # [H]
    top: float  # the largest probability; NaN where the logits are broken


@dataclass(slots=True)
class HeadMemory:
    """The KV holds `num_confirmed` entries that committed tokens stand behind, then drafted ones.

    Positions below `num_seen` are in it or were lost (a hole). The rest waits in `chunks`, in order
    of position; the last of them may hold drafted tokens until `settle`.
    """

    kv: HeadKV
    num_confirmed: int = 0
    num_seen: int = 0
    num_late: int = 0  # tokens read later than they were told; not reported yet
    look: Look | None = None
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def num_unread(self) -> int:
        return sum(len(chunk.tokens) for chunk in self.chunks)

    def hold(self, chunk: Chunk, most: int) -> None:
        """Keep what is new of it, and nothing further back than `most` tokens."""
        self._cut_from(chunk.position)
        self._drop_before(chunk.end - most)
        new = chunk.part(max(self.num_seen, chunk.end - most), chunk.end)
        if new.tokens:
            # The features are a view of what the target will overwrite.
            self.chunks.append(Chunk(new.position, list(new.tokens), new.features.clone()))

    def settle(self, tokens: Sequence[int], num_prompt: int) -> None:
        """Forget what was drafted and not committed: what then waits is to be read now.

        All but the last chunk is late, where it is not of the prompt.
        """
        self.kv.cut(self.num_confirmed)
        if self.chunks:
            last = self.chunks.pop()
            agreed = last.part(last.position, last.position + _num_agreed(last, tokens))
            self.chunks += [agreed] if agreed.tokens else []
        begin = num_prompt - 1
        self.num_late += sum(
            max(chunk.end - max(chunk.position, begin), 0) for chunk in self.chunks[:-1]
        )

    def is_ready(self, tokens: Sequence[int]) -> bool:
        """True where, with what waits, the head can draft behind these tokens."""
        if self.look is not None and self.look.num_tokens == len(tokens):
            return True
        if not self.chunks:
            return False
        last = self.chunks[-1]
        return last.position + _num_agreed(last, tokens) == len(tokens) - 1

    def mark_read(self, chunk: Chunk) -> None:
        """It is in the KV now; it was the first of `chunks`, or a beginning of that."""
        self.num_confirmed += len(chunk.tokens)
        self.num_seen = chunk.end
        self.chunks[0] = self.chunks[0].part(chunk.end, self.chunks[0].end)
        if not self.chunks[0].tokens:
            del self.chunks[0]

    def forget(self) -> None:
        """What is in the KV can't be trusted: all of it becomes a hole."""
        self.kv.cut(0)
        self.num_confirmed = 0
        self.look = None

    def check_integrity(self) -> None:
        """Raise AssertionError unless entries, positions and chunks agree."""
        if not self.num_confirmed <= min(self.kv.length, self.num_seen):
            raise AssertionError("the head's KV holds fewer entries than were confirmed")
        position = self.num_seen
        for chunk in self.chunks:
            if chunk.position < position or not chunk.tokens:
                raise AssertionError("features wait out of order")
            position = chunk.end

    def _cut_from(self, position: int) -> None:
        """The target goes on from here: whatever waits behind was rejected, or comes again."""
        while self.chunks and self.chunks[-1].position >= position:
            self.chunks.pop()
        if self.chunks and self.chunks[-1].end > position:
            last = self.chunks.pop()
            self.chunks.append(last.part(last.position, position))

    def _drop_before(self, position: int) -> None:
        while self.chunks and self.chunks[0].end <= position:
            del self.chunks[0]
        if self.chunks and self.chunks[0].position < position:
            self.chunks[0] = self.chunks[0].part(position, self.chunks[0].end)


def _num_agreed(last: Chunk, tokens: Sequence[int]) -> int:
    """How much of the last chunk can be read behind these committed tokens.

    A position needs the token after it, so the row's last token stays unread. Of earlier chunks
    everything can: the target went on from their end.
    """
    pairs = zip(last.tokens, tokens[last.position : len(tokens) - 1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
