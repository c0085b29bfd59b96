"""Moving memory into huge pages changes nothing that is in it."""

from __future__ import annotations

import numpy as np

from outrider.engine.runtimes.huge_pages import new_memory_in_huge_pages


def test_contents_survive_the_move() -> None:
    with new_memory_in_huge_pages():
        kept = np.arange(4 << 20, dtype=np.int64)
        dropped = np.ones(4 << 20)
        del dropped
    assert np.array_equal(kept, np.arange(4 << 20, dtype=np.int64))
    kept[:] = 7
    assert int(kept.sum()) == 7 * len(kept)
