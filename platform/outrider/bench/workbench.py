"""What every experiment works with: one model, the prompts, and engines made to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from outrider.bench.arm import Arm, EngineArm
from outrider.bench.contrary import ContraryDrafter
from outrider.bench.paired import Pairing, measure
from outrider.bench.transformers_arm import TransformersArm
from outrider.bench.workload import Prompt
from outrider.config.schema import (
    BreakerSettings,
    DrafterKind,
    DraftLengthSettings,
    DraftSettings,
    EngineSettings,
    LengthPolicy,
)
from outrider.core import Clock, Tokenizer
from outrider.engine.cost import CostModel
from outrider.engine.drafters import SafeDrafter
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.engine import Engine
from outrider.engine.language_model import LanguageModel
from outrider.engine.speculation import SpeculationPolicy


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Opens arms over one target. Prefix caching and the shared corpus are off: prompts are
    decoded by every arm in turn, and none may learn from another or from itself."""

    model: LanguageModel  # the target as plain decoding runs it
    drafted: LanguageModel  # the same weights, with the outputs that the drafter reads
    tokenizer: Tokenizer
    open_module: Callable[[], Any]  # the same weights as a transformers module
    open_drafter: Callable[[DraftSettings], SafeDrafter]
    engine: EngineSettings
    draft: DraftSettings
    prompts: Sequence[Prompt]
    warmup: Sequence[Prompt]  # other prompts, decoded before anything is timed
    max_tokens: int
    num_repeats: int
    clock: Clock
    tell: Callable[[str], None]
    conditions: str

    def plain(self, in_flight: int) -> Arm:
        return self._arm("plain", in_flight, drafter=DrafterKind.NONE)

    def adaptive(self, in_flight: int) -> Arm:
        return self._arm("adaptive", in_flight)

    def lookup(self, in_flight: int) -> Arm:
        """Prompt lookup alone, where the drafter can do more."""
        return self._arm("n-gram", in_flight, drafter=DrafterKind.NGRAM)

    def fixed(self, in_flight: int, length: int) -> Arm:
        """Drafts of always `length` tokens where there is an offer; nothing takes it back."""
        fixed = DraftLengthSettings(policy=LengthPolicy.FIXED, max=length)
        never = BreakerSettings(enabled=False)
        return self._arm(f"fixed {length}", in_flight, length=fixed, breaker=never)

    def held_at_zero(self, in_flight: int) -> Arm:
        """An engine with a drafter that is told to draft nothing."""
        return self._arm("held at 0", in_flight, length=DraftLengthSettings(max=0))

    def contrary(self, in_flight: int) -> Arm:
        """An engine whose drafter is always wrong: it proposes a token the target never emits."""
        never = min(set(range(self.model.shape.vocab_size)) - self.tokenizer.eos_ids)
        drafter = GuardedDrafter(
            ContraryDrafter(never), vocab_size=self.model.shape.vocab_size, clock=self.clock
        )
        return self._over("contrary", in_flight, self.model, drafter, self.draft)

    def transformers(self, in_flight: int) -> Arm:
        return TransformersArm(
            self.open_module(),
            in_flight=in_flight,
            max_tokens=self.max_tokens,
            eos_id=min(self.tokenizer.eos_ids),
            clock=self.clock,
        )

    def compare(
        self,
        title: str,
        arms: Sequence[Arm],
        batches: Sequence[Sequence[Prompt]],
        *,
        warm: bool = True,
    ) -> Pairing:
        """Warm every arm up on other prompts, then measure them in turn."""
        if warm:
            for arm in arms:
                self.tell(f"{title}: warming up {arm.name}")
                arm.decode(self.warmup)
        return measure(
            arms,
            batches,
            num_repeats=self.num_repeats,
            progress=lambda at: self.tell(f"{title}: {at}"),
        )

    def _arm(self, name: str, in_flight: int, **own: Any) -> EngineArm:
        """With the drafting at hand, but for `own` of its settings."""
        draft = replace(self.draft, **own)
        draft = replace(draft, ngram=replace(draft.ngram, corpus=False))
        reads = draft.drafter in (DrafterKind.HEAD, DrafterKind.COMPOSITE)
        target = self.drafted if reads else self.model
        return self._over(name, in_flight, target, self.open_drafter(draft), draft)

    def _over(
        self,
        name: str,
        in_flight: int,
        target: LanguageModel,
        drafter: SafeDrafter,
        draft: DraftSettings,
    ) -> EngineArm:
        cost = CostModel(target.identity)
        engine = Engine(
            target,
            self.tokenizer,
            drafter,
            SpeculationPolicy(draft.length, draft.breaker, cost, sizes=target),
            replace(self.engine, max_rows=in_flight, prefix_caching=False),
            clock=self.clock,
        )
        engine.calibrate()
        return EngineArm(name, engine, max_tokens=self.max_tokens, clock=self.clock)
