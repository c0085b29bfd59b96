"""Targets for processes elsewhere: they leave a file for each process that uses them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from outrider.engine.language_model import RowSlice
from outrider.testing import DelayedModel, ScriptedFeatureModel

VOCAB = 40


def score(prefix: tuple[int, ...]) -> Sequence[float]:
    return [math.sin(1.0 + token * (1 + len(prefix)) + sum(prefix)) for token in range(VOCAB)]


def feature(prefix: tuple[int, ...]) -> Sequence[float]:
    return [float(prefix[-1]), float(len(prefix) - 1), float(sum(prefix) % 7)]


class NotedModel(DelayedModel):
    """Notes each forward in `note` before it is computed; stands still while `wedge` exists."""

    def __init__(self, note: Path, wedge: Path) -> None:
        model = ScriptedFeatureModel(
            score, feature=feature, feature_size=3, vocab_size=VOCAB, num_blocks=1024
        )
        super().__init__(model, 0.0, wedge)
        self._note = note

    @property
    def features(self) -> torch.Tensor:
        return self._model.features

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        with self._note.open("a") as note:
            note.write(".")
        return super().forward(rows)


@dataclass(frozen=True)
class ScriptedTarget:
    """An `OpenTarget` without files."""

    notes: Path
    wedge: Path

    def folder(self) -> Path:
        raise NotImplementedError

    def __call__(self, layers: tuple[int, ...], num_threads: int = 0) -> NotedModel:
        return NotedModel(self.notes / str(os.getpid()), self.wedge)


@dataclass(frozen=True)
class NotedTarget:
    """Another `OpenTarget`: processes that learn leave a note, and wait while `wedge` exists."""

    inner: Any
    notes: Path
    driver: int  # a process that does neither

    @property
    def wedge(self) -> Path:
        return self.notes / "wedge"

    def folder(self) -> Path:
        if os.getpid() != self.driver:
            (self.notes / str(os.getpid())).touch()
            while self.wedge.exists():
                time.sleep(0.05)
        return self.inner.folder()

    def __call__(self, layers: tuple[int, ...], num_threads: int = 0) -> Any:
        return self.inner(layers, num_threads)
