"""A running engine that says the alphabet: what a replica of a test opens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from outrider.config.schema import EngineSettings, NgramSettings
from outrider.core import SystemClock
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.runner import Runner
from outrider.testing.over_model import DelayedModel
from outrider.testing.scripted_model import ScriptedModel
from outrider.testing.toy_engine import toy_engine
from outrider.testing.toy_tokenizers import ByteTokenizer


@dataclass(frozen=True, kw_only=True)
class AlphabetEngine:
    """Opens a running engine that says the alphabet: each letter is followed by the next, the
    last by EOS, anything else by a. It drafts from its own tokens. Picklable.
    """

    delay_s: float = 0.0  # seconds of one forward
    max_rows: int = 16
    num_blocks: int = 2048
    wedge: Path | None = None  # while this file exists, no forward ends
    last: str = "z"  # letter

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        model = ScriptedModel(
            partial(_next_letter, self.last),
            vocab_size=257,
            context_length=4096,
            num_blocks=self.num_blocks,
        )
        engine = toy_engine(
            DelayedModel(model, self.delay_s, self.wedge),
            NgramDrafter(NgramSettings(), None),
            length=3,
            tokenizer=ByteTokenizer(),
            clock=SystemClock(),
            settings=EngineSettings(max_rows=self.max_rows),
        )
        return Runner(engine), ByteTokenizer()


def _next_letter(end: str, prefix: tuple[int, ...]) -> list[float]:
    scores = [0.0] * 257
    scores[ord("a")] = 1.0
    last = prefix[-1]
    if last == ord(end):
        scores[256] = 2.0
    elif ord("a") <= last < ord("z"):
        scores[last + 1] = 2.0
    return scores
