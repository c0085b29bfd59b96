"""A toy target whose features are a function of the tokens before, as its logits are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from outrider.engine.language_model import RowSlice
from outrider.testing.scripted_model import ScriptedModel


def token_and_position(prefix: tuple[int, ...]) -> Sequence[float]:
    """[2] the token just fed and where it stands."""
    return float(prefix[-1]), float(len(prefix) - 1)


class ScriptedFeatureModel(ScriptedModel):
    """A `FeatureModel`: `feature(prefix)` returns `feature_size` floats, read back as logits are.

    Other arguments are those of `ScriptedModel`.
    """

    def __init__(
        self,
        logits: Callable[[tuple[int, ...]], Sequence[float]],
        *,
        feature: Callable[[tuple[int, ...]], Sequence[float]] = token_and_position,
        feature_size: int = 2,
        feature_layers: tuple[int, ...] = (0,),
        **scripted: Any,
    ) -> None:
        super().__init__(logits, **scripted)
        self._feature = feature
        self.feature_size = feature_size
        self.feature_layers = feature_layers
        self.features = torch.empty(0, feature_size)

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        scores = super().forward(rows)
        told = [self._feature(prefix) for row in rows for prefix in self._prefixes(row)]
        self.features = torch.tensor(told, dtype=torch.float32).reshape(-1, self.feature_size)
        return scores

    def _prefixes(self, row: RowSlice) -> list[tuple[int, ...]]:
        """What stands before and at each new token."""
        length = row.past_length + len(row.tokens)
        tokens = self._read(row.blocks, length)
        return [tokens[: end + 1] for end in range(row.past_length, length)]
