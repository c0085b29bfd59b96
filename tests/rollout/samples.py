"""Requests as a gateway tells them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from outrider.rollout.sums import Sums
from outrider.serving.sample import Comparison, Cursor, Likeness, Reading, Sample
from outrider.serving.split import Arm

STABLE, CANDIDATE = Arm.STABLE, Arm.CANDIDATE


def sample(arm: Arm, **changes: Any) -> Sample:
    """A request that was served: 32 tokens in a second, the first after a tenth."""
    served = {
        "finish_reason": "stop",
        "mode": "speculative",
        "num_tokens": 32,
        "num_rounds": 16,
        "drafted": 40,
        "accepted": 20,
        "first_token_s": 0.1,
        "total_s": 1.0,
    }
    return Sample(arm=arm, **served | changes)


def varied(
    arm: Arm, num: int, slowness: float = 1.0, seed: int = 0, **changes: Any
) -> list[Sample]:
    """Log-normal times, half of them within 20 % of the middle one."""
    rng = Random(f"{seed}/{arm}")
    made = []
    for _ in range(num):
        pace = rng.lognormvariate(0.0, 0.3) * slowness
        accepted = rng.randint(12, 28)
        told = {"total_s": pace, "first_token_s": 0.1 * pace, "accepted": accepted}
        made.append(sample(arm, **told | changes))
    return made


def failed(arm: Arm, num: int, **changes: Any) -> list[Sample]:
    return [sample(arm, error="timeout", finish_reason="error", **changes) for _ in range(num)]


def compared(**nums: int) -> list[Comparison]:
    """So many of each likeness: `compared(same=3, mismatch=1)`."""
    return [
        Comparison(likeness=Likeness(name), position=7, margin=0.25)
        for name, num in nums.items()
        for _ in range(num)
    ]


def seen(
    samples: Sequence[Sample] = (), comparisons: Sequence[Comparison] = (), **counts: int
) -> Sums:
    return Sums().after(reading(samples, comparisons, **counts))


def reading(
    samples: Sequence[Sample] = (),
    comparisons: Sequence[Comparison] = (),
    epoch: str = "a",
    **counts: int,
) -> Reading:
    cursor = Cursor(epoch=epoch, number=len(samples))
    return Reading(cursor=cursor, samples=tuple(samples), comparisons=tuple(comparisons), **counts)
