"""One model over another, whose forwards it holds back."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from outrider.engine.language_model import ExactSizes, LanguageModel, ModelShape, RowSlice


class OverModel(ExactSizes):
    """Another model, but for what a subclass does around its forwards."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def shape(self) -> ModelShape:
        return self._model.shape

    @property
    def identity(self) -> dict[str, str]:
        return self._model.identity

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        return self._model.forward(rows)


class DelayedModel(OverModel):
    """Any model, whose forwards last `delay_s` seconds longer, or while the file `wedge` exists."""

    def __init__(self, model: LanguageModel, delay_s: float, wedge: Path | None = None) -> None:
        super().__init__(model)
        self._delay_s = delay_s
        self._wedge = wedge

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        if self._delay_s:
            time.sleep(self._delay_s)
        while self._wedge is not None and self._wedge.exists():
            time.sleep(0.05)
        return super().forward(rows)


class WedgedModel(OverModel):
    """Any model, whose forwards stand still while `gate` is closed (`gate.clear()`)."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.gate = threading.Event()
        self.gate.set()

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        self.gate.wait()
        return super().forward(rows)
