"""What is compared: something that decodes prompts, so many in flight at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from outrider.bench.workload import Prompt
from outrider.core import Clock, Completion, Speculation
from outrider.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Timing:
    """What decoding some prompts gave and took, prefill included."""

    tokens: int  # emitted
    seconds: float
    num_rounds: int = 0
    num_draft_rounds: int = 0
    outputs: tuple[tuple[int, ...], ...] = ()  # token ids of each prompt, in order


class Arm(Protocol):
    """One side of a comparison."""

    @property
    def name(self) -> str: ...

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        """Decode all prompts greedily; the arm's own number of them are in flight."""
        ...


class EngineArm:
    """An engine of its own over a model that may be shared: only one arm decodes at a time."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        *,
        max_tokens: int,
        clock: Clock,
        speculation: Speculation | None = None,
    ) -> None:
        self._name = name
        self._engine = engine
        self._max_tokens = max_tokens
        self._clock = clock
        self._speculation = speculation or Speculation()

    @property
    def name(self) -> str:
        return self._name

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        started = self._clock.monotonic()
        for prompt in prompts:
            self._engine.submit(prompt.request(self._max_tokens, self._speculation))
        done = run_to_end(self._engine)
        seconds = self._clock.monotonic() - started
        counters = [done[prompt.name].counters for prompt in prompts]
        return Timing(
            tokens=sum(each.emitted for each in counters),
            seconds=seconds,
            num_rounds=sum(each.num_rounds for each in counters),
            num_draft_rounds=sum(each.num_draft_rounds for each in counters),
            outputs=tuple(done[prompt.name].token_ids for prompt in prompts),
        )


def run_to_end(engine: Engine) -> dict[str, Completion]:
    """Step until idle; completions by request id."""
    done = {}
    while engine.has_work:
        for update in engine.step():
            if update.completion is not None:
                done[update.request_id] = update.completion
    return done


OpenArm = Callable[[int], Arm]
"""in flight -> a fresh arm"""
