"""A figure's name, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meter:
    """One figure."""

    name: str
    unit: str  # as a plural noun; "1" for a ratio
    help: str

    def of(self, kind: str) -> str:
        """The name of this figure for one kind of request: `speedup_ratio/chat`."""
        return f"{self.name}/{kind}" if kind else self.name

    def at(self, percent: int) -> str:
        """The name of a percentile of this figure: `first_token_s_p95`."""
        return f"{self.name}_p{percent}"

    @property
    def low(self) -> str:
        return f"{self.name}_low"

    @property
    def high(self) -> str:
        return f"{self.name}_high"

    @property
    def shown(self) -> str:
        """The name for Prometheus, which has `_total` behind a counter's."""
        return f"outrider_{self.name}"

    @property
    def by_drafter(self) -> Meter:
        """The same, told for each drafter apart."""
        return Meter(f"drafter_{self.name}", self.unit, f"{self.help} By drafter.")

    @property
    def served(self) -> Meter:
        """The same, of requests that ended, by the mode that they were decoded in."""
        return Meter(f"served_{self.name}", self.unit, f"{self.help} Of requests that ended.")
