"""A trial out of its settings: releases, each against plain decoding, in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from outrider.cluster.cores import num_cores
from outrider.cluster.environment import prepare_environment
from outrider.config.folders import Folders
from outrider.config.load import load
from outrider.config.overridden import overridden
from outrider.config.schema import Accepted, BenchJob
from outrider.core import SystemClock, UserError
from outrider.tracking.provenance import collect
from outrider.tracking.rebuild import Registered, check_words
from outrider.tracking.registry import Registry
from outrider.trial.contender import Contender
from outrider.trial.entry import Entry, entries, without_releases
from outrider.trial.evaluation import read_evaluation
from outrider.trial.judgement import Decision
from outrider.trial.screen import Screen
from outrider.trial.trial import Trial
from outrider.wiring.contenders import SHARED_OFF, ContenderMaker
from outrider.wiring.parts import with_pinned_sources
from outrider.wiring.stores import REPOSITORY, RUNS, models_uri, registry, tracker

NAME = "bench"  # of the command, as of its file in `conf/`


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
    maker = ContenderMaker(
        cores=cores,
        evaluation_sha256=evaluation.sha256,
        provenance=collect(REPOSITORY),
        store=models_uri(settings.tracking),
    )
    contenders = [entered(entry, maker, words, settings.accept) for entry in lineup]
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
        job = with_pinned_sources(load(BenchJob, NAME, words))
        for key, word in overridden(BenchJob, Folders().groups(NAME), words).items():
            if key.startswith("bench.") or key in ("release", "bench"):
                raise UserError(
                    f"{word}: {key} says nothing where releases=[...] are measured; leave it out"
                )
        return job

    def rebuild(self, uri: str) -> tuple[BenchJob, Registered]:
        given = overridden(BenchJob, Folders().groups(NAME), self.words)
        check_words(uri, given)
        registered = Registered.found(self.registry, uri)
        job = registered.rebuilt(load(BenchJob, NAME, self.words), given)
        return with_pinned_sources(job), registered


def entered(
    entry: Entry, maker: ContenderMaker, words: Sequence[str], accept: Collection[Accepted]
) -> Contender:
    """A registered one is confirmed to be what was registered."""
    made = maker.contender(entry.name, entry.job, words, baseline=entry.baseline)
    if entry.registered is None:
        return made
    return replace(made, release=entry.registered.confirmed(made.release, accept))
