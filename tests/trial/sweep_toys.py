"""Searches over toys, in this process, on a clock turned by hand: one length is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trial_toys import case, cases, next_letter

from outrider.config.schema import CriteriaSettings, EngineSettings, NgramSettings, Part
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.runner import Runner
from outrider.testing import (
    ByteTokenizer,
    ManualClock,
    MemoryRegistry,
    MemoryTracker,
    ScriptedModel,
    toy_engine,
)
from outrider.tracking.registry import Registry
from outrider.tracking.release import Release
from outrider.trial.book import Heading
from outrider.trial.case import Case
from outrider.trial.contender import Contender, OpenEngine
from outrider.trial.halving import Halving
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch
from outrider.trial.side import OpenSide
from outrider.trial.split import cases_of
from outrider.trial.sums import Terms
from outrider.trial.sweep import Sweep
from outrider.trial.sweep_book import SweepBook
from outrider.trial.sweep_end import SweepEnd
from outrider.trial.sweep_folder import SweepFolder
from outrider.trial.sweep_gauge import Gauge
from outrider.trial.sweep_plan import in_order
from outrider.trial.sweep_record import RungRecord
from outrider.trial.sweep_seats import SweepSeats
from outrider.trial.worker import Worker

BEST = 4  # a round has a draft and one token more: up to that length they cost nothing
NUM_TUNING = 12


def free_to_the_best(rows: int, tokens: int) -> float:
    """Seconds of a forward."""
    return 0.01 * (1 + max(0, min(tokens, 16) - BEST - 1) / 2)


def drafts(
    clock: ManualClock,
    length: int,
    cost: Callable[[int, int], float] = free_to_the_best,
    logits: Callable[[Sequence[int]], list[float]] = next_letter,
) -> OpenEngine:
    """Always drafts `length` tokens, all of them right."""

    def open_engine() -> tuple[Runner, ByteTokenizer]:
        model = ScriptedModel(
            logits,
            vocab_size=257,
            context_length=4096,
            num_blocks=4096,
            clock=clock,
            cost=cost,
        )
        engine = toy_engine(
            model,
            NgramDrafter(NgramSettings(), None),
            length=length,
            tokenizer=ByteTokenizer(),
            clock=clock,
            settings=EngineSettings(),
        )
        return Runner(engine, clock=clock), ByteTokenizer()

    return open_engine


def contender(name: str, open_engine: OpenEngine, baseline: str = "plain") -> Contender:
    release = Release(
        fingerprint=f"f-{name}",
        settings={"draft": {"length": name}},
        model="toy",
        config={"draft": {"length": name}},
        texts={"overrides.txt": f"{name}\n", "config.yaml": f"length: {name}\n"},
    )
    return Contender(name=name, release=release, open_engine=open_engine, baseline=baseline)


@dataclass
class SearchWorld:
    """What outlives one start of a search: its folder and the stores."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    tracker: MemoryTracker = field(default_factory=MemoryTracker)
    registry: Registry | None = field(default_factory=MemoryRegistry)
    told: list[str] = field(default_factory=list)
    shown: list[RungRecord] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)  # engines, in order
    num_turns: int = 0
    last_turn: int = -1  # what comes next is a signal
    cases: Sequence[Case] = field(default_factory=lambda: cases(2 * NUM_TUNING))

    def candidates(self, *lengths: int, **how: Any) -> list[Contender]:
        return [contender(f"max={k}", drafts(self.clock, k, **how)) for k in lengths]

    def sweep(
        self,
        candidates: Sequence[Contender],
        *,
        identity: Mapping[str, Any] | None = None,
        open_side: OpenSide | None = None,
        first_prompts: int = 3,
        criteria: CriteriaSettings | None = None,
    ) -> Sweep:
        folder, written = SweepFolder(self.folder), criteria or CriteriaSettings(min_pairs=4)
        tuning = in_order(cases_of(Part.TUNING, self.cases, 0.5))
        plain = contender("plain", drafts(self.clock, 0), "")
        heading = Heading(name="max", params={"sweep": identity or {}}, tags={"part": "tuning"})
        return Sweep(
            identity=identity or {"sweep": {"axes": [one.name for one in candidates]}},
            plain=plain,
            candidates=candidates,
            halving=Halving(keep_ratio=0.5, first_prompts=first_prompts, all_prompts=len(tuning)),
            criteria=written,
            gauge=Gauge(
                plain=plain,
                candidates=candidates,
                cases=tuning,
                warmup=(case("warm", "chat"), case("up", "edit")),
                in_flight=1,
                num_passes=1,
                near_tie=0.5,
                terms=Terms(cores=2),
                folder=folder,
                seats=SweepSeats(
                    open_side=open_side or self.open_side,
                    clock=self.clock,
                    tell=self.told.append,
                ),
                clock=self.clock,
                tell=self.told.append,
            ),
            folder=folder,
            session=nullcontext,
            book=SweepBook(tracker=self.tracker, heading=heading, in_flight=1),
            end=SweepEnd(
                registry=self.registry,
                criteria=written,
                folder=folder,
                in_flight=1,
                tell=self.told.append,
            ),
            show=self.shown.append,
            tell=self.told.append,
        )

    def open_side(self, one: Contender) -> Worker:
        self.opened.append(one.name)
        worker = CountedWorker.open(one, timeout_s=1e6)
        assert isinstance(worker, CountedWorker)
        worker.clock, worker.world = self.clock, self
        return worker


class CountedWorker(Worker):
    """Tells its world of its turns, and stops in one as a signal would."""

    world: SearchWorld

    def decode(self, batch: Batch) -> Measured:
        if self.world.num_turns == self.world.last_turn:
            raise KeyboardInterrupt
        self.world.num_turns += 1
        return super().decode(batch)
