"""How much an engine has to do, as other threads see it."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """A snapshot between rounds; requests that were handed over and not yet opened are waiting.

    `queued_tokens` counts, over waiting and running rows, the tokens that have no KV yet if each
    row goes on to max_tokens (or the context's end): the prompt's, and all of the output but what
    has been computed. A row that decodes counts the token it emitted last, which is fed next.
    """

    num_running: int = 0  # rows with KV blocks
    num_waiting: int = 0  # rows without
    queued_tokens: int = 0  # still to be computed, at most
    num_free_blocks: int = 0  # those kept for their prefix alone are free
    num_blocks: int = 0
    num_rounds: int = 0  # ended so far
    drafts: DraftSums = NOTHING_DRAFTED  # so far

    @property
    def is_idle(self) -> bool:
        return not (self.num_running or self.num_waiting)
