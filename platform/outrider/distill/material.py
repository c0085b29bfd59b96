"""What a distillation works on: the target, its texts, the layers and tokens that are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from outrider.config.schema import DistillJob, Dtype, ModelSettings
from outrider.core import UserError
from outrider.distill.corpus import AnswerTokenizer, Corpus, Example, read_corpus
from outrider.distill.feature_cache import DTYPES, Compute, FeatureCache, cache_key
from outrider.distill.features import Features, chosen_layers, computed
from outrider.distill.texts import Lines, file_lines
from outrider.distill.vocabulary import Vocabulary, vocabulary_of
from outrider.engine.language_model import FeatureModel
from outrider.models import ModelFiles
from outrider.tracking.provenance import Provenance


class OpenTarget(Protocol):
    """The target in whatever process calls. Picklable."""

    def folder(self) -> Path:
        """Its files on the machine of the process."""
        ...

    def __call__(self, layers: tuple[int, ...], num_threads: int = 0) -> FeatureModel:
        """Load it, with the layers whose outputs are wanted: takes seconds.

        `num_threads`: what the settings leave open; 0: every core.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model that a head is for."""

    files: ModelFiles
    config: Any  # its Hugging Face configuration
    tokenizer: AnswerTokenizer
    context_length: int  # tokens
    device: torch.device
    open: OpenTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is learnt from, before anything is computed."""

    target: Target
    corpus: Corpus
    layers: tuple[int, ...]
    vocabulary: Vocabulary
    features: FeatureCache

    def order(self, most_tokens: int) -> FeatureOrder:
        """For its features. `most_tokens`: of a forward."""
        return FeatureOrder(
            cache=self.features,
            target=self.target.open,
            layers=self.layers,
            most_tokens=most_tokens,
            device=self.target.device,
        )

    @property
    def num_tokens(self) -> int:
        """Of all rows, prompts too."""
        return sum(len(each.tokens) for each in self.features.examples)

    def parents(self, provenance: Provenance) -> dict[str, str]:
        """Where a head comes from: tags of its run and of its version."""
        files = self.target.files
        told = {
            "lineage.source_data": self.corpus.digest,
            "lineage.weights": files.weights_digest,
            "lineage.tokenizer": files.tokenizer_digest,
            "lineage.prompt": files.chat_template_digest or "",
            "code.revision": provenance.code.revision,
            **{f"parent.{name}": value for name, value in self.corpus.parents.items()},
        }
        return {name: value for name, value in told.items() if value}

    def __str__(self) -> str:
        corpus, vocabulary = self.corpus, self.vocabulary
        return (
            f"{corpus.num_answer_tokens} tokens of {len(corpus.train)} answers to learn from and "
            f"{len(corpus.valid)} to judge by{_told_of(corpus.dropped)}; {len(vocabulary.ids)} "
            f"tokens cover {vocabulary.coverage(corpus.valid):.2%} of what is said"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOrder:
    """Features that are to be computed. Picklable."""

    cache: FeatureCache
    target: OpenTarget
    layers: tuple[int, ...]
    most_tokens: int  # of a forward
    device: torch.device

    def opened(self, num_threads: int = 0) -> Compute:
        """Load the target, once for all rows."""
        model = self.target(self.layers, num_threads)

        def compute(rows: Sequence[Example]) -> Iterator[Features]:
            dtype = DTYPES[self.cache.dtype]
            return computed(model, rows, most_tokens=self.most_tokens, dtype=dtype)

        return compute


def gathered(
    job: DistillJob, target: Target, cache_dir: Path, lines: Lines = file_lines
) -> Material:
    """Read the texts. UserError where they can't be learnt from."""
    settings, model = job.distill, job.model
    room = min(target.context_length, model.kv_blocks * model.block_size)
    corpus = read_corpus(
        Path(settings.input),
        target.tokenizer,
        max_tokens=min(settings.max_tokens, room),
        valid_share=settings.valid_share,
        limit=settings.limit,
        lines=lines,
    )
    if corpus.parents.get("weights", target.files.weights_digest) != target.files.weights_digest:
        raise UserError(
            f"distill.input: another model wrote the answers in {settings.input}: a head learns "
            "from its own target's"
        )
    layers = chosen_layers(settings.feature_layers, target.config.num_hidden_layers)
    root = Path(settings.features_dir or cache_dir / "features").absolute()
    return Material(
        target=target,
        corpus=corpus,
        layers=layers,
        vocabulary=vocabulary_of(corpus.train, target.tokenizer.eos_ids, settings.vocab_size),
        features=_cache(root, model, target, corpus, layers),
    )


def _cache(
    root: Path, model: ModelSettings, target: Target, corpus: Corpus, layers: tuple[int, ...]
) -> FeatureCache:
    identity: dict[str, object] = {
        "corpus": corpus.digest,
        "num_train": len(corpus.train),
        "weights": target.files.weights_digest,
        "layers": list(layers),
        "runtime": model.runtime.value,
        "device": target.device.type,
        "dtype": model.dtype.value,
    }
    return FeatureCache(
        folder=root / cache_key(identity),
        identity=identity,
        examples=(*corpus.train, *corpus.valid),
        feature_size=len(layers) * target.config.hidden_size,
        dtype="bfloat16" if model.dtype is Dtype.BFLOAT16 else "float32",
    )


def _told_of(dropped: Mapping[str, int]) -> str:
    if not dropped:
        return ""
    most = max(dropped, key=lambda why: dropped[why])
    return f" ({sum(dropped.values())} rows can't be used: {most})"
