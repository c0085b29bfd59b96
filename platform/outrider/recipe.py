"""How an engine is built, in whatever process is to have it.

The engine is imported by whoever builds one: a job's driver holds a recipe and never decodes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.bulk.ports import ChatTokenizer, Decoder
from outrider.config.schema import DraftSettings, EngineSettings, ModelSettings
from outrider.core import SystemClock
from outrider.models import HfTokenizer, resolve, same_vocabulary
from outrider.models.cache import Notice
from outrider.tracking.provenance import hardware

if TYPE_CHECKING:
    from outrider.bulk.trace import RoundTrace
    from outrider.engine.drafters import SafeDrafter
    from outrider.engine.language_model import LanguageModel
    from outrider.engine.runner import Runner
    from outrider.engine.speculation import SpeculationPolicy

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EngineRecipe:
    """Builds a running engine in whatever process calls it. Picklable."""

    model: ModelSettings
    draft: DraftSettings
    engine: EngineSettings
    cache_dir: Path
    trace_dir: Path | None = None

    def __call__(self) -> tuple[Decoder, ChatTokenizer]:
        """For bulk jobs, with a trace where one is asked for."""
        if self.trace_dir is None:
            return self.live()
        from outrider.bulk.trace import RoundTrace, TracedDecoder, trace_name

        trace = RoundTrace(self.trace_dir, name=trace_name())
        runner, tokenizer = self._open(trace)
        return TracedDecoder(runner, trace), tokenizer

    def live(self) -> tuple[Runner, HfTokenizer]:
        """The engine itself, without a trace."""
        return self._open(None)

    def runner(self) -> Runner:
        return self.live()[0]

    def _open(self, trace: RoundTrace | None) -> tuple[Runner, HfTokenizer]:
        from outrider.engine.engine import Engine
        from outrider.engine.llguidance_matcher import LlguidanceCompiler
        from outrider.engine.runner import Runner

        target, tokenizer = open_language_model(self.model, self.cache_dir, _LOG.info)
        drafter, policy = self._drafting(target, tokenizer)
        constraints = LlguidanceCompiler(
            tokenizer.to_json,
            vocab_size=min(target.shape.vocab_size, max(tokenizer.vocabulary.values()) + 1),
            eos_ids=sorted(tokenizer.eos_ids),
        )
        engine = Engine(
            target, tokenizer, drafter, policy, self.engine, trace=trace, constraints=constraints
        )
        engine.calibrate()
        return Runner(engine), tokenizer

    def _drafting(
        self, target: LanguageModel, tokenizer: HfTokenizer
    ) -> tuple[SafeDrafter, SpeculationPolicy]:
        """The drafter and the policy that governs it."""
        from outrider.engine.cost import CostModel
        from outrider.engine.drafters.factory import open_drafter
        from outrider.engine.speculation import SpeculationPolicy

        model, identity = None, {f"target.{key}": name for key, name in target.identity.items()}
        if self.draft.model is not None:
            model, theirs = open_language_model(self.draft.model, self.cache_dir, _LOG.info)
            same_vocabulary(tokenizer, theirs)
            identity |= {f"draft.{key}": name for key, name in model.identity.items()}
        drafter = open_drafter(
            self.draft.drafter,
            vocab_size=target.shape.vocab_size,
            clock=SystemClock(),
            ngram=self.draft.ngram,
            model=model,
        )
        cost = CostModel({**identity, "drafter": self.draft.drafter.value, "cpu": hardware().cpu})
        policy = SpeculationPolicy(self.draft.length, self.draft.breaker, cost, sizes=target)
        return drafter, policy


def with_threads(settings: ModelSettings, num_threads: int) -> ModelSettings:
    return replace(settings, num_threads=settings.num_threads or num_threads)


def open_language_model(
    settings: ModelSettings, cache_dir: Path, notice: Notice
) -> tuple[LanguageModel, HfTokenizer]:
    """Fetch, convert and load what `settings.source` names."""
    from outrider.engine.runtimes import open_model

    files = resolve(settings.source, cache_dir=cache_dir, notice=notice)
    model = open_model(
        files.folder, settings, digest=files.weights_digest, cache_dir=cache_dir, notice=notice
    )
    return model, HfTokenizer.load(files.folder)
