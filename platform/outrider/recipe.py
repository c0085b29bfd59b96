"""How an engine is built, in whatever process is to have it.

The engine is imported by whoever builds one: a job's driver holds a recipe and never decodes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.bulk.ports import ChatTokenizer, Decoder
from outrider.config.folders import SHIPPED
from outrider.config.schema import DrafterKind, DraftSettings, EngineSettings, ModelSettings
from outrider.core import SystemClock
from outrider.models import (
    HeadFiles,
    HfTokenizer,
    ModelFiles,
    resolve,
    resolve_head,
    same_vocabulary,
)
from outrider.models.cache import Notice
from outrider.tracking.provenance import hardware

if TYPE_CHECKING:
    from outrider.bulk.trace import RoundTrace
    from outrider.engine.drafters import SafeDrafter
    from outrider.engine.drafters.head import HeadDrafter
    from outrider.engine.head import CompiledHead
    from outrider.engine.language_model import LanguageModel
    from outrider.engine.runner import Runner
    from outrider.engine.speculation import SpeculationPolicy

HEADS = SHIPPED / "heads"
"""Draft heads that are shipped, one a folder."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EngineRecipe:
    """Builds a running engine in whatever process calls it. Picklable."""

    model: ModelSettings
    draft: DraftSettings
    engine: EngineSettings
    cache_dir: Path
    store: str = ""  # MLflow's, of mlflow: sources; empty: the one that MLFLOW_TRACKING_URI names
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

        parts = self.parts()
        target, tokenizer = parts.target, parts.tokenizer
        constraints = LlguidanceCompiler(
            tokenizer.to_json,
            vocab_size=min(target.shape.vocab_size, max(tokenizer.vocabulary.values()) + 1),
            eos_ids=sorted(tokenizer.eos_ids),
        )
        engine = Engine(
            target,
            tokenizer,
            parts.drafter(self.draft),
            parts.policy(self.draft),
            self.engine,
            trace=trace,
            constraints=constraints,
        )
        engine.calibrate()
        return Runner(engine), tokenizer

    def parts(self) -> EngineParts:
        """The models, opened in this process."""
        source, store = self.model.source, self.store
        files = resolve(source, cache_dir=self.cache_dir, notice=_LOG.info, store=store)
        head = self._head(files)
        layers = () if head is None else head.head.config.feature_layers
        target, tokenizer = open_files(files, self.model, self.cache_dir, _LOG.info, layers)
        model = None
        if self.draft.model is not None:
            draft = self.draft.model
            model, theirs = open_language_model(draft, self.cache_dir, _LOG.info, store)
            same_vocabulary(tokenizer, theirs)
        return EngineParts(target, tokenizer, model, head)

    def _head(self, target: ModelFiles) -> OpenedHead | None:
        """Before the target is opened: it says which layers are read, and may be refused."""
        source = self.draft.head.source
        if not source or self.draft.drafter not in (DrafterKind.HEAD, DrafterKind.COMPOSITE):
            return None
        files = resolve_head(
            source, shipped=HEADS, cache_dir=self.cache_dir, notice=_LOG.info, store=self.store
        )
        return OpenedHead.of(files, target, self.model)


@dataclass(frozen=True)
class EngineParts:
    """What decodes, and what may draft for it: engines are made of these."""

    target: LanguageModel
    tokenizer: HfTokenizer
    model: LanguageModel | None  # the draft model
    head: OpenedHead | None

    def drafter(self, draft: DraftSettings) -> SafeDrafter:
        """A new one, that remembers no row."""
        from outrider.engine.drafters.factory import open_drafter

        vocab_size = self.target.shape.vocab_size
        return open_drafter(
            draft.drafter,
            vocab_size=vocab_size,
            clock=SystemClock(),
            ngram=draft.ngram,
            model=self.model,
            head=None if self.head is None else self.head.drafter(vocab_size),
        )

    def policy(self, draft: DraftSettings) -> SpeculationPolicy:
        """What governs that drafter, with what rounds cost these models on this machine."""
        from outrider.engine.cost import CostModel
        from outrider.engine.speculation import SpeculationPolicy

        names = self._identity() | {"drafter": draft.drafter.value, "cpu": hardware().cpu}
        return SpeculationPolicy(draft.length, draft.breaker, CostModel(names), sizes=self.target)

    def _identity(self) -> dict[str, str]:
        named = {f"target.{key}": name for key, name in self.target.identity.items()}
        if self.model is not None:
            named |= {f"draft.{key}": name for key, name in self.model.identity.items()}
        if self.head is not None:
            named["draft.head"] = self.head.digest
        return named


@dataclass(frozen=True)
class OpenedHead:
    """A draft head, ready to draft."""

    head: CompiledHead
    digest: str

    @classmethod
    def of(cls, files: HeadFiles, target: ModelFiles, settings: ModelSettings) -> OpenedHead:
        """`settings`: the target's. UserError where the head is of another one, or is damaged."""
        from outrider.engine.head import CompiledHead, load_embedding, load_head
        from outrider.engine.runtimes import head_compiler, resolve_device

        head = load_head(files.folder, target, device=resolve_device(settings.device))
        sizes = {"vocab_size": head.config.vocab_size, "hidden_size": head.config.hidden_size}
        embedding = load_embedding(target.folder, **sizes)
        return cls(CompiledHead(head, embedding, head_compiler(settings)), files.weights_digest)

    def drafter(self, vocab_size: int) -> HeadDrafter:
        """`vocab_size`: the width of the target's logits."""
        from outrider.engine.drafters.head import HeadDrafter

        return HeadDrafter(self.head, vocab_size=vocab_size)


def with_threads(settings: ModelSettings, num_threads: int) -> ModelSettings:
    return replace(settings, num_threads=settings.num_threads or num_threads)


def open_language_model(
    settings: ModelSettings, cache_dir: Path, notice: Notice, store: str = ""
) -> tuple[LanguageModel, HfTokenizer]:
    """Fetch, convert and load what `settings.source` names."""
    files = resolve(settings.source, cache_dir=cache_dir, notice=notice, store=store)
    return open_files(files, settings, cache_dir, notice)


def open_files(
    files: ModelFiles,
    settings: ModelSettings,
    cache_dir: Path,
    notice: Notice,
    feature_layers: tuple[int, ...] = (),
) -> tuple[LanguageModel, HfTokenizer]:
    """Load what is on this machine, with the outputs of `feature_layers` where they are wanted."""
    from outrider.engine.runtimes import open_model

    model = open_model(
        files.folder,
        settings,
        digest=files.weights_digest,
        cache_dir=cache_dir,
        notice=notice,
        feature_layers=feature_layers,
    )
    return model, HfTokenizer.load(files.folder)
