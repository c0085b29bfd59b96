"""How the gradients of an update come together where several processes compute them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist

from outrider.engine.head import DraftHead


class Joining(Protocol):
    """The processes of a training hold the same head, before an update and after it."""

    @property
    def is_first(self) -> bool:
        """One of them judges and saves."""
        ...

    def share(self, pack: Sequence[int]) -> Sequence[int]:
        """Which of an update's rows this process computes; every row is of one process."""
        ...

    def joined(self, head: DraftHead, loss: torch.Tensor) -> torch.Tensor:
        """The sum of all processes' losses; the head's gradients become sums as well."""
        ...

    def agreed(self, *, said: bool) -> bool:
        """What the first process said, in all of them."""
        ...


class Alone:
    """One process."""

    is_first = True

    def share(self, pack: Sequence[int]) -> Sequence[int]:
        return pack

    def joined(self, head: DraftHead, loss: torch.Tensor) -> torch.Tensor:
        return loss

    def agreed(self, *, said: bool) -> bool:
        return said


class AllReduce:
    """The processes of torch's default group, on CPU tensors: gloo, which every machine has.

    A pack is of rows of about one size, so each process takes every num-th one.
    """

    def __init__(self) -> None:
        self._rank, self._num = dist.get_rank(), dist.get_world_size()

    @property
    def is_first(self) -> bool:
        return self._rank == 0

    def share(self, pack: Sequence[int]) -> Sequence[int]:
        return pack[self._rank :: self._num]

    def joined(self, head: DraftHead, loss: torch.Tensor) -> torch.Tensor:
        """In one message: all gradients, then the loss."""
        weights = list(head.parameters())
        told = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        flat = torch.cat([*(each.flatten() for each in told), loss.view(1)]).cpu()
        dist.all_reduce(flat)
        *sums, total = torch.split(flat, [*(w.numel() for w in weights), 1])
        for weight, each in zip(weights, sums, strict=True):
            weight.grad = each.view_as(weight).to(weight.device)
        return total[0].to(loss.device)

    def agreed(self, *, said: bool) -> bool:
        told = torch.tensor([said], dtype=torch.int32)
        dist.broadcast(told, src=0)
        return bool(told.item())
