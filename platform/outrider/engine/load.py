"""How much an engine has to do, as other threads see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """A snapshot between rounds; requests that were handed over and not yet opened are waiting."""

    num_running: int = 0  # rows with KV blocks
    num_waiting: int = 0  # rows without
    queued_tokens: int = 0  # of all rows: prompt tokens not yet computed, tokens not yet emitted
    num_free_blocks: int = 0
    num_blocks: int = 0
    num_rounds: int = 0

    @property
    def is_idle(self) -> bool:
        return not (self.num_running or self.num_waiting)
