"""Counter-based random numbers: the same (seed, position, purpose) gives the same draw anywhere.

Philox-4x64 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): the key holds the
seed and the purpose, the counter the position, so no state is carried from one draw to the next.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64 - 1


class Purpose(IntEnum):
    """What a draw is for. Draws for different purposes are independent."""

    SAMPLE = 1  # the target's token at a position; under rule coupled also the draft's
    DRAFT = 2  # the drafter's token under rule ratio
    ACCEPT = 3  # the acceptance test under rule ratio
    RESAMPLE = 4  # the residual draw under rule ratio


def _stream(seed: int, position: int, purpose: Purpose) -> np.random.Generator:
    # The low counter word is left to the stream itself: a draw may use up to 2^64 blocks.
    key = np.array([seed & _WORD, purpose], dtype=np.uint64)
    counter = np.array([0, position, 0, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def uniform(seed: int, position: int, purpose: Purpose) -> float:
    """One uniform number in [0, 1)."""
    return float(_stream(seed, position, purpose).random())


def exponential(seed: int, position: int, purpose: Purpose, size: int) -> NDArray[np.float64]:
    """Standard exponential noise [size], never zero.

    With E exponential, -log E is Gumbel noise, so argmax(p / E) is the Gumbel-max draw from p
    (argmax(log p + G)) without a logarithm.
    """
    noise = _stream(seed, position, purpose).standard_exponential(size)
    return np.maximum(noise, np.finfo(np.float64).tiny)
