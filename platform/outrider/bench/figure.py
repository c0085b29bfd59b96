"""One measured figure, what it must reach, and under which conditions it was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum


class Unit(StrEnum):
    """How a value is shown."""

    TIMES = "x"
    SHARE = "%"  # the value is 0 to 1
    MILLISECONDS = "ms"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`value` must be at least `bound` (at most, where `is_ceiling`)."""

    name: str
    what: str  # one line for the table
    value: float
    bound: float
    aim: float
    is_ceiling: bool = False
    unit: Unit = Unit.TIMES
    low: float | None = None  # 95 % interval, by bootstrap over prompts
    high: float | None = None
    conditions: str = ""
    details: Mapping[str, object] = field(default_factory=dict)  # by arm: what else was measured

    @property
    def is_reached(self) -> bool:
        return self.value <= self.bound if self.is_ceiling else self.value >= self.bound

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "is_reached": self.is_reached}
