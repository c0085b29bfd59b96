"""A small world for trials: prompts that hold the alphabet, engines that say it at a set pace."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outrider.config.schema import (
    CriteriaSettings,
    EngineSettings,
    NgramSettings,
    Part,
    RuleKind,
    TrialSettings,
)
from outrider.core import Rule, SamplingParams
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.runner import Runner
from outrider.testing import (
    AlphabetEngine,
    ByteTokenizer,
    ManualClock,
    MemoryRegistry,
    MemoryTracker,
    ScriptedModel,
    toy_engine,
)
from outrider.tracking.registry import Registry
from outrider.tracking.release import Release
from outrider.trial.case import Case
from outrider.trial.contender import Contender, OpenEngine
from outrider.trial.evaluation import Evaluation
from outrider.trial.side import OpenSide
from outrider.trial.trial import Trial
from outrider.trial.worker import Worker

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ROUND_S = 0.01  # of a forward, whatever is in it: a draft of a right token is free


def case(name: str, kind: str = "chat", *, temperature: float = 0.0, language: str = "") -> Case:
    """The answer is the alphabet from c on, which the prompt holds: n-grams draft it."""
    return Case(
        name=name,
        messages=({"role": "user", "content": f"{name} {ALPHABET}. ab"},),
        params=SamplingParams(temperature=temperature, max_tokens=64, seed=len(name)),
        kind=kind,
        language=language,
    )


def cases(num: int = 24) -> tuple[Case, ...]:
    """Half of them are kept for confirmation; a quarter is sampled."""
    kinds = ("chat", "edit")
    return tuple(
        case(f"case{i:02d}", kinds[i % 2], temperature=0.5 if i % 4 == 3 else 0.0)
        for i in range(num)
    )


def next_letter(prefix: Sequence[int]) -> list[float]:
    scores = [0.0] * 257
    last = prefix[-1]
    if last == ord("z"):
        scores[256] = 30.0
    elif ord("a") <= last < ord("z"):
        scores[last + 1] = 30.0
    else:
        scores[ord("a")] = 30.0
    return scores


def at_pace(
    clock: ManualClock,
    *,
    round_s: float = ROUND_S,
    length: int = 0,
    jitter: float = 0.0,
    logits: Callable[[Sequence[int]], list[float]] = next_letter,
    rule: Rule = Rule.COUPLED,
) -> OpenEngine:
    """An engine on a clock turned by hand; `length` tokens are drafted where there is a match."""

    def open_engine() -> tuple[Runner, ByteTokenizer]:
        chance = random.Random(7)
        model = ScriptedModel(
            logits,
            vocab_size=257,
            context_length=4096,
            num_blocks=4096,
            clock=clock,
            cost=lambda rows, tokens: round_s * (1 + jitter * chance.uniform(-1, 1)),
        )
        engine = toy_engine(
            model,
            NgramDrafter(NgramSettings(), None),
            length=length,
            tokenizer=ByteTokenizer(),
            clock=clock,
            settings=EngineSettings(rule=RuleKind(rule.value)),
        )
        return Runner(engine, clock=clock), ByteTokenizer()

    return open_engine


def release(name: str) -> Release:
    settings = {"engine": {"rule": "coupled"}, "draft": {"drafter": name}}
    return Release(fingerprint=f"f-{name}", settings=settings, model="toy")


def contender(
    name: str, open_engine: OpenEngine, *, baseline: str = "plain", rule: Rule = Rule.COUPLED
) -> Contender:
    return Contender(
        name=name,
        release=release(name),
        open_engine=open_engine,
        baseline=baseline,
        rule=rule,
    )


def plain(clock: ManualClock, **pace: Any) -> Contender:
    return contender("plain", at_pace(clock, **pace), baseline="")


@dataclass
class World:
    """A trial over toys, in this process."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    tracker: MemoryTracker = field(default_factory=MemoryTracker)
    registry: Registry | None = field(default_factory=MemoryRegistry)
    told: list[str] = field(default_factory=list)
    cases: Sequence[Case] = field(default_factory=cases)

    def trial(
        self,
        *contenders: Contender,
        criteria: Mapping[str, Any] | None = None,
        open_side: OpenSide | None = None,
        **settings: Any,
    ) -> Trial:
        """One at a time, so that the clock tells the same each time."""
        base = TrialSettings(evaluation="toys", warmup="toys", in_flight=(1,))
        return Trial(
            settings=replace(base, **settings),
            criteria=replace(CriteriaSettings(min_pairs=6), **(criteria or {})),
            evaluation=Evaluation(name="toys.jsonl", sha256="e" * 64, cases=tuple(self.cases)),
            warmup=(case("warm", "chat"), case("up", "edit")),
            contenders=contenders,
            open_side=open_side or self.open_side,
            session=nullcontext,
            tracker=self.tracker,
            registry=self.registry,
            folder=self.folder / "trial",
            cores=2,
            conditions={"model": "toy"},
            clock=self.clock,
            tell=self.told.append,
        )

    def open_side(self, one: Contender) -> Worker:
        worker = Worker.open(one, timeout_s=1e6)
        worker.clock = self.clock
        return worker


CONFIRM = Part.CONFIRMATION


@dataclass(frozen=True)
class Dying:
    """An engine whose process dies at its next request while the file `mark` has lines left."""

    mark: Path
    engine: AlphabetEngine = field(default_factory=AlphabetEngine)

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        runner, _ = self.engine()
        return runner, DeadlyTokenizer(self.mark)


class DeadlyTokenizer(ByteTokenizer):
    """Takes a line off the file and ends the process, as a kill would."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        lives = self._mark.read_text().splitlines() if self._mark.exists() else []
        if lives:
            self._mark.write_text("".join(f"{line}\n" for line in lives[1:]))
            os._exit(9)
        return super().encode_chat(messages)
