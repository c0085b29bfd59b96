"""Where training stands, in one safetensors file that is replaced whole: kill -9 loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from outrider.bulk.durable import replacing
from outrider.core import UserError
from outrider.engine.head import DraftHead

STATE = "state"
MOMENTS = ("exp_avg", "exp_avg_sq")  # of AdamW


@dataclass(slots=True)
class Progress:
    """What is known beside the weights."""

    update: int = 0  # updates done
    best_update: int = 0
    best_score: float = 0.0  # 0: never judged
    num_worse: int = 0  # judgements since the best one
    is_done: bool = False
    seconds: float = 0.0  # spent in training, all runs together
    best_metrics: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Training:
    """A head, its optimiser, the best head so far."""

    head: DraftHead
    optimiser: torch.optim.AdamW
    best: dict[str, torch.Tensor]
    progress: Progress

    def save(self, path: Path) -> None:
        tensors: dict[str, torch.Tensor] = {}
        tensors |= {f"head.{name}": weight for name, weight in self.head.named_parameters()}
        tensors |= {f"best.{name}": weight for name, weight in self.best.items()}
        tensors |= dict(self._moments())
        kept = {name: each.detach().contiguous().cpu() for name, each in tensors.items()}
        with replacing(path) as out:
            out.write(save(kept, metadata={STATE: json.dumps(asdict(self.progress))}))

    def load(self, path: Path) -> None:
        """Go on from there. UserError where the file is damaged or of another head."""
        try:
            with safe_open(path, framework="pt") as file:
                self.progress = Progress(**json.loads(file.metadata()[STATE]))
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            self._take(tensors)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} can't be read: remove it to begin anew") from error

    def _moments(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, weight in self.head.named_parameters():
            for moment in MOMENTS:
                if weight in self.optimiser.state:
                    yield f"{moment}.{name}", self.optimiser.state[weight][moment]

    def _take(self, tensors: Mapping[str, torch.Tensor]) -> None:
        device = self.head.device
        for name, weight in self.head.named_parameters():
            with torch.no_grad():
                weight.copy_(tensors[f"head.{name}"])
            self.best[name] = tensors[f"best.{name}"].to(device)
            if self.progress.update:
                self.optimiser.state[weight] = {
                    "step": torch.tensor(float(self.progress.update)),
                    **{each: tensors[f"{each}.{name}"].to(device) for each in MOMENTS},
                }
