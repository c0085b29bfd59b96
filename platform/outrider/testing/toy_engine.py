"""A whole engine over any model, and how to run it to its end."""

from __future__ import annotations

from collections.abc import Callable

from outrider.config.schema import EngineSettings
from outrider.core import Clock, Completion, Request, Tokenizer
from outrider.engine.constraint import ConstraintCompiler
from outrider.engine.drafters import Drafter
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.drafters.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.language_model import LanguageModel
from outrider.engine.round_record import TraceSink
from outrider.testing.manual_clock import ManualClock
from outrider.testing.scripted_policy import ScriptedPolicy
from outrider.testing.toy_tokenizers import LetterTokenizer


def toy_engine(
    model: LanguageModel,
    drafter: Drafter | None = None,
    *,
    length: int | Callable[[int, int], int] = 0,
    tokenizer: Tokenizer | None = None,
    clock: Clock | None = None,
    trace: TraceSink | None = None,
    settings: EngineSettings | None = None,
    constraints: ConstraintCompiler | None = None,
) -> Engine:
    """An engine with scripted draft lengths over any model; its tokenizer fits the vocabulary."""
    vocab_size, clock = model.shape.vocab_size, clock or ManualClock()
    script = length if callable(length) else lambda round_, row_id: length
    return Engine(
        model,
        tokenizer or LetterTokenizer("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: vocab_size - 1]),
        GuardedDrafter(drafter or NoDrafter(), vocab_size=vocab_size, clock=clock),
        ScriptedPolicy(script),
        settings or EngineSettings(),
        clock=clock,
        trace=trace,
        constraints=constraints,
    )


def finish(engine: Engine, *requests: Request) -> dict[str, Completion]:
    """Submit, step until idle, check integrity each round; return completions by request id."""
    for request in requests:
        engine.submit(request)
    done: dict[str, Completion] = {}
    while engine.has_work:
        for update in engine.step():
            if update.completion is not None:
                done[update.request_id] = update.completion
        engine.check_integrity()
    return done
