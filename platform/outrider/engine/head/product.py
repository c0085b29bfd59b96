"""What a head is computed with: a product with weights that stay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
import torch.nn.functional as F

Product: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""[n, K] to [n, N], in the type and on the device of the head. Its result is the caller's."""

MakeProduct: TypeAlias = Callable[[torch.Tensor], Product]
"""The product of weights [N, K]."""


def exact(weight: torch.Tensor) -> Product:
    """In the type of the weights, where they are."""
    return partial(F.linear, weight=weight.detach())
