"""An engine that goes round the alphabet, and whose drafter knows what comes next or never does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outrider.config.schema import EngineSettings
from outrider.core import SystemClock
from outrider.engine.runner import Runner
from outrider.testing import (
    AlphabetEngine,
    ByteTokenizer,
    DelayedModel,
    ScriptedDrafter,
    ScriptedModel,
    toy_engine,
)

BROKEN = "!"  # the target has no logits for what follows it


@dataclass(frozen=True, kw_only=True)
class LettersEngine(AlphabetEngine):
    """`knows`: asked at each draft; one that knows nothing drafts what is never accepted."""

    knows: Callable[[], bool] = lambda: True
    delay_s: float = 0.002

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        def script(tokens: Sequence[int], length: int) -> list[int]:
            right = [_after(tokens[-1], steps) for steps in range(1, length + 1)]
            return right if self.knows() else [0] * length

        model = ScriptedModel(_letters, vocab_size=257, num_blocks=self.num_blocks)
        engine = toy_engine(
            DelayedModel(model, self.delay_s, self.wedge),
            ScriptedDrafter(script),
            length=3,
            tokenizer=ByteTokenizer(),
            clock=SystemClock(),
            settings=EngineSettings(max_rows=self.max_rows),
        )
        return Runner(engine), ByteTokenizer()


def _letters(prefix: Sequence[int]) -> list[float]:
    """a to z and again."""
    scores = [0.0] * 257
    scores[_after(prefix[-1], 1)] = 2.0
    return [float("nan")] * 257 if ord(BROKEN) in prefix else scores


def _after(letter: int, steps: int) -> int:
    return ord("a") + (letter - ord("a") + steps) % 26
