"""Put weights into huge pages: each forward streams all of them, and page walks cost a fifth of it.

Linux only; elsewhere, or where the kernel can't, nothing happens. What is computed is the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SIZE = 2 << 20  # bytes of a huge page on x86-64 and most arm64
_COLLAPSE = 25  # MADV_COLLAPSE, Linux 6.1 or newer
_MAPS = Path("/proc/self/maps")


@contextmanager
def new_memory_in_huge_pages() -> Iterator[None]:
    """Move what the process allocates inside, and still holds at the end, into huge pages."""
    before = _writable_pages()
    yield
    collapse = _madvise()
    if collapse is not None:
        for page in sorted(_writable_pages() - before):
            # Refused where nothing was written yet: that is fine
            collapse(page * _SIZE, _SIZE, _COLLAPSE)


def _writable_pages() -> set[int]:
    """Return the huge pages, by number, that lie wholly in private anonymous memory."""
    pages: set[int] = set()
    if not _MAPS.is_file():
        return pages
    for line in _MAPS.read_text().splitlines():
        # 7f10c0000000-7f10c4000000 rw-p 00000000 00:00 0    [heap]
        bounds, access, _, _, _, *name = line.split(maxsplit=5)
        if access == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            pages.update(range(-(-begin // _SIZE), end // _SIZE))
    return pages


def _madvise() -> Callable[[int, int, int], int] | None:
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is not None:
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise
