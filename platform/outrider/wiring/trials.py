"""A trial out of its settings: releases, each against plain decoding, in processes of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from outrider.cluster.cores import num_cores
from outrider.cluster.environment import prepare_environment
from outrider.config.folders import Folders
from outrider.config.load import load
from outrider.config.overridden import overridden
from outrider.config.schema import BenchJob, DraftSettings
from outrider.core import SystemClock, UserError
from outrider.models import default_cache_dir
from outrider.recipe import EngineRecipe, with_threads
from outrider.tracking.provenance import Provenance, collect
from outrider.tracking.rebuild import Registered, check_words
from outrider.tracking.registry import Registry
from outrider.tracking.release import make_release
from outrider.trial.contender import Contender
from outrider.trial.entry import Entry, entries, without_releases
from outrider.trial.evaluation import read_evaluation
from outrider.trial.judgement import Decision
from outrider.trial.screen import Screen
from outrider.trial.trial import Trial
from outrider.wiring.parts import fetch
from outrider.wiring.stores import REPOSITORY, RUNS, registry, tracker

NAME = "bench"  # of the command, as of its file in `conf/`
SHARED_OFF = "off: prompts are decoded more than once, and it would know the answers"


def trial(settings: BenchJob, words: Sequence[str]) -> int:
    """Measure the releases, show what was found. 1 where one is rejected."""
    notices = Console(stderr=True)

    def tell(line: str) -> None:
        notices.print(line, highlight=False, markup=False, style="dim", soft_wrap=True)

    made = make_trial(settings, words, tell)
    record = made.run()
    made.tracker.close()
    Screen(record, settings.trial.currency, made.cores).show(Console())
    judgements = [one.judgement for one in record.entrants if one.judgement is not None]
    return 1 if any(one.decision is Decision.REJECT for one in judgements) else 0


def make_trial(settings: BenchJob, words: Sequence[str], tell: Callable[[str], None]) -> Trial:
    """Everything that can be refused is refused here, before a model is loaded."""
    prepare_environment()  # Ray reads it when imported
    from outrider.cluster.session import ray_session
    from outrider.trial.arena import ActorSide

    chosen, common = settings.trial, without_releases(words)
    store = registry(settings.tracking)
    evaluation = read_evaluation(Path(chosen.evaluation), answer_tokens=chosen.answer_tokens)
    warmup = read_evaluation(Path(chosen.warmup), answer_tokens=chosen.answer_tokens)
    named = Named(common, store)
    lineup = entries(chosen.releases, common, named.compose, named.rebuild)
    cores = chosen.cores or num_cores()
    maker = Maker(settings, words, cores, evaluation.sha256, collect(REPOSITORY))
    contenders = [maker.contender(entry) for entry in lineup]
    return Trial(
        settings=chosen,
        criteria=settings.criteria,
        evaluation=evaluation,
        warmup=warmup.cases,
        contenders=contenders,
        open_side=lambda contender: ActorSide(contender, chosen.timeout_s),
        session=lambda: ray_session(RUNS / "trial.log", num_cpus=1),
        tracker=tracker(settings.tracking),
        registry=store if settings.tracking.enabled else None,
        folder=RUNS / "trials" / time.strftime("%Y%m%d-%H%M%S"),
        cores=cores,
        conditions={
            **contenders[0].release.conditions,
            "prefix_cache": "emptied before each turn",
            "shared_corpus": SHARED_OFF,
        },
        clock=SystemClock(),
        tell=tell,
    )


@dataclass(frozen=True)
class Named:
    """What the user's words and `models:/` addresses stand for."""

    words: Sequence[str]
    registry: Registry

    def compose(self, words: Sequence[str]) -> BenchJob:
        """UserError for a key that a trial would not heed."""
        job = load(BenchJob, NAME, words)
        for key, word in overridden(BenchJob, Folders().groups(NAME), words).items():
            if key.startswith("bench.") or key in ("release", "bench"):
                raise UserError(
                    f"{word}: says nothing where releases=[...] are measured; leave it out"
                )
        return job

    def rebuild(self, uri: str) -> tuple[BenchJob, Registered]:
        given = overridden(BenchJob, Folders().groups(NAME), self.words)
        check_words(uri, given)
        registered = Registered.found(self.registry, uri)
        return registered.rebuilt(load(BenchJob, NAME, self.words), given), registered


@dataclass(frozen=True)
class Maker:
    """Entries -> contenders."""

    settings: BenchJob
    words: Sequence[str]
    cores: int
    evaluation_sha256: str
    provenance: Provenance

    def contender(self, entry: Entry) -> Contender:
        cache_dir, notices, job = default_cache_dir(os.environ), Console(stderr=True), entry.job
        target, draft = fetch(job.model, job.draft, cache_dir, notices)
        resources = {"cores": self.cores}
        release = make_release(job, target, draft, self.provenance, self.words, resources)
        if entry.registered is not None:
            release = entry.registered.confirmed(release, self.settings.accept)
        recipe = EngineRecipe(
            model=with_threads(job.model, self.cores),
            draft=self._drafting(job.draft),
            engine=job.engine,
            cache_dir=cache_dir,
        )
        return Contender(
            name=entry.name,
            release=release.on_data(evaluation_set=self.evaluation_sha256),
            open_engine=recipe.live,
            baseline=entry.baseline,
            rule=job.engine.rule.rule,
        )

    def _drafting(self, draft: DraftSettings) -> DraftSettings:
        """Without the corpus that answers are shared by (`SHARED_OFF`)."""
        draft = replace(draft, ngram=replace(draft.ngram, corpus=False))
        if draft.model is None:
            return draft
        return replace(draft, model=with_threads(draft.model, self.cores))
