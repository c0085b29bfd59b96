"""Text of a row as its tokens come, and where a stop string cuts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_UNFINISHED = "\ufffd"  # what a decoder prints for the first bytes of a longer character


class TextStream:
    """Decodes token by token, holding back characters whose bytes have not all come.

    A token is decoded together with the few before it, since many tokenizers join across tokens.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0  # first token decoded along as context
        self._read = 0  # tokens whose text is out
        self._held = ""  # whole characters before one whose bytes have not all come
        self.text = ""

    @property
    def seen(self) -> str:
        """`text` and the whole characters held back with an unfinished one: stops may lie there."""
        return self.text + self._held

    def push(self, token: int) -> None:
        self._ids.append(token)
        before, now = self._around()
        new = now[len(before) :]
        self._held = new.rstrip(_UNFINISHED)
        if new and self._held == new:
            self._take(new)

    def flush(self) -> None:
        """Take what is still held back: the row has ended."""
        before, now = self._around()
        self._take(now[len(before) :])

    def _around(self) -> tuple[str, str]:
        before = self._decode(self._ids[self._context : self._read])
        return before, self._decode(self._ids[self._context :])

    def _take(self, new: str) -> None:
        self.text += new
        self._held = ""
        self._context, self._read = self._read, len(self._ids)


def find_stop(text: str, stops: Sequence[str], scanned: int) -> tuple[int, str] | None:
    """The earliest stop string that ends behind the first `scanned` characters: (where it begins,
    the string)."""
    starts = [(max(0, scanned - len(stop) + 1), stop) for stop in stops]
    found = [(index, stop) for start, stop in starts if (index := text.find(stop, start)) >= 0]
    return min(found, default=None)


def num_safe(text: str, stops: Sequence[str]) -> int:
    """Characters of `text` that no stop string could still swallow."""
    held = 0
    for stop in stops:
        longest = min(len(stop) - 1, len(text))
        for size in range(longest, held, -1):
            if text.endswith(stop[:size]):
                held = size
                break
    return len(text) - held
