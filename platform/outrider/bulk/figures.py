"""What was counted while a shard was decoded, by arm and kind. Sums only; ratios come later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from outrider.core import Completion, Counters
from outrider.engine.parity import Parity


class Arm(StrEnum):
    """How rows were decoded."""

    SPECULATIVE = "speculative"
    PLAIN = "plain"


@dataclass(slots=True)
class ArmFigures:
    """Rows of one kind decoded in one arm."""

    num_rows: int = 0
    num_prompt_tokens: int = 0
    counters: Counters = field(default_factory=Counters)

    def add(self, other: ArmFigures) -> None:
        self.num_rows += other.num_rows
        self.num_prompt_tokens += other.num_prompt_tokens
        self.counters += other.counters

    def count(self, completion: Completion) -> None:
        self.add(ArmFigures(1, completion.num_prompt_tokens, completion.counters))

    def to_dict(self) -> dict[str, Any]:
        return {
            "num_rows": self.num_rows,
            "num_prompt_tokens": self.num_prompt_tokens,
            "counters": self.counters.to_dict(),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ArmFigures:
        counters = Counters(**value["counters"])
        return cls(value["num_rows"], value["num_prompt_tokens"], counters)


@dataclass(slots=True)
class Figures:
    """Everything counted in a shard or a job."""

    arms: dict[tuple[Arm, str], ArmFigures] = field(default_factory=dict)
    parity: Parity = field(default_factory=Parity)

    def count(self, arm: Arm, kind: str, completion: Completion) -> None:
        self.arms.setdefault((arm, kind), ArmFigures()).count(completion)

    def add(self, other: Figures) -> None:
        for key, figures in other.arms.items():
            self.arms.setdefault(key, ArmFigures()).add(figures)
        self.parity += other.parity

    def total(self, arm: Arm, kinds: Iterable[str] | None = None) -> ArmFigures:
        """Sum over the given kinds, or over all."""
        wanted = None if kinds is None else set(kinds)
        total = ArmFigures()
        for (its_arm, kind), figures in self.arms.items():
            if its_arm is arm and (wanted is None or kind in wanted):
                total.add(figures)
        return total

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for _, kind in self.arms})

    def to_dict(self) -> dict[str, Any]:
        arms = [
            {"arm": str(arm), "kind": kind, **figures.to_dict()}
            for (arm, kind), figures in sorted(self.arms.items())
        ]
        return {"arms": arms, "parity": asdict(self.parity)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Figures:
        arms = {(Arm(i["arm"]), i["kind"]): ArmFigures.from_dict(i) for i in value["arms"]}
        return cls(arms, Parity(**value["parity"]))
