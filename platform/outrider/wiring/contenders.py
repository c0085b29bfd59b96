"""Settings -> contenders: a release, and how its engine is opened in another process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from outrider.config.schema import DraftSettings
from outrider.models import default_cache_dir
from outrider.recipe import EngineRecipe, with_threads
from outrider.tracking.provenance import Provenance
from outrider.tracking.release import Decoding, make_release
from outrider.trial.contender import Contender
from outrider.wiring.parts import fetch

SHARED_OFF = "off: prompts are decoded more than once, and it would know the answers"


@dataclass(frozen=True, kw_only=True)
class ContenderMaker:
    """Models are fetched, not loaded."""

    cores: int
    evaluation_sha256: str
    provenance: Provenance
    store: str  # of mlflow: sources

    def contender(
        self, name: str, job: Decoding, words: Sequence[str], *, baseline: str
    ) -> Contender:
        """`words`: the overrides that made `job`."""
        cache_dir, notices = default_cache_dir(os.environ), Console(stderr=True)
        target, draft = fetch(job.model, job.draft, cache_dir, notices, self.store)
        resources = {"cores": self.cores}
        release = make_release(job, target, draft, self.provenance, words, resources)
        recipe = EngineRecipe(
            model=with_threads(job.model, self.cores),
            draft=self._drafting(job.draft),
            engine=job.engine,
            cache_dir=cache_dir,
            store=self.store,
        )
        return Contender(
            name=name,
            release=release.on_data(evaluation_set=self.evaluation_sha256),
            open_engine=recipe.live,
            baseline=baseline,
            rule=job.engine.rule.rule,
        )

    def _drafting(self, draft: DraftSettings) -> DraftSettings:
        """Without the corpus that answers are shared by (`SHARED_OFF`)."""
        draft = replace(draft, ngram=replace(draft.ngram, corpus=False))
        if draft.model is None:
            return draft
        return replace(draft, model=with_threads(draft.model, self.cores))
