"""What is told of a training when it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from outrider.distill.judgement import Judgement

SHOWN = 4  # draft positions of a line


@dataclass(frozen=True, slots=True)
class Moment:
    """A judgement and where it stands in the course."""

    update: int
    num_updates: int
    loss: float  # mean since the last one
    rate: float
    judgement: Judgement
    is_best: bool

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """Out of what `dataclasses.asdict` made of one."""
        return cls(**{**told, "judgement": Judgement(**told["judgement"])})

    def metrics(self) -> Mapping[str, float]:
        told = {"train_loss": self.loss, "learning_rate": self.rate}
        return {**self.judgement.metrics(), **told}

    def __str__(self) -> str:
        agreement = " ".join(f"{ratio:.0%}" for ratio in self.judgement.agreement[:SHOWN])
        best = ", the best so far" if self.is_best else ""
        return (
            f"update {self.update}/{self.num_updates}: loss {self.loss:.3f}, agrees {agreement}, "
            f"{self.judgement.score:.2f} tokens per round{best}"
        )
