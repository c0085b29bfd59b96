"""All that a process needs to learn a head. Picklable: processes elsewhere learn together."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from outrider.config.schema import DistillSettings
from outrider.core import Clock
from outrider.distill.batch import numbers_of
from outrider.distill.beginning import config_of, new_head
from outrider.distill.feature_cache import FeatureCache
from outrider.distill.joining import Joining
from outrider.distill.material import Material, OpenTarget
from outrider.distill.training import Part, Trainer
from outrider.engine.head import HeadConfig, load_embedding


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is computed once for all (`features`) is on disk by now."""

    settings: DistillSettings
    config: HeadConfig
    vocabulary: tuple[int, ...]
    features: FeatureCache
    num_train: int  # rows of the features that are learnt from; the others judge
    target: OpenTarget
    device: torch.device

    def trainer(self, clock: Clock, joining: Joining | None = None) -> Trainer:
        """At its beginning. UserError where features are missing or damaged."""
        chosen, config, folder = self.settings, self.config, self.target.folder()
        head = new_head(config, self.vocabulary, folder, init=chosen.init, seed=chosen.seed)
        sizes = {"vocab_size": config.vocab_size, "hidden_size": config.hidden_size}
        embedding = load_embedding(folder, **sizes).float()
        reader, rows = self.features.open(), self.features.examples
        return Trainer(
            chosen,
            head.to(self.device),
            embedding.to(self.device),
            numbers_of(self.vocabulary, len(embedding)),
            Part(rows[: self.num_train], reader, 0),
            Part(rows[self.num_train :], reader, self.num_train),
            clock,
            joining,
        )


def course_of(settings: DistillSettings, material: Material) -> Course:
    """How a head for the material's target is learnt from its features."""
    target, ids = material.target, material.vocabulary.ids
    return Course(
        settings=settings,
        config=config_of(target.config, target.files, material.layers, ids),
        vocabulary=ids,
        features=material.features,
        num_train=len(material.corpus.train),
        target=target.open,
        device=target.device,
    )
