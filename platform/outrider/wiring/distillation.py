"""A draft head out of its settings: prompts to learn from, then what is learnt."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.cluster.cores import is_given
from outrider.config.folders import SHIPPED
from outrider.config.schema import DistillAction, DistillJob, DistillSettings, ModelSettings
from outrider.core import SystemClock, UserError
from outrider.distill.backend import Backend, OneProcess
from outrider.distill.corpus import written
from outrider.distill.document import read_document
from outrider.distill.job import Distillation
from outrider.distill.material import Target
from outrider.distill.overlap import refuse_overlap
from outrider.distill.prompts import expand
from outrider.distill.report import show
from outrider.engine.language_model import FeatureModel
from outrider.engine.runtimes import open_model, resolve_device
from outrider.engine.runtimes.loading import context_length, load_config
from outrider.models import HfTokenizer, ModelFiles, default_cache_dir, resolve
from outrider.models.cache import Notice
from outrider.models.source import anchored
from outrider.recipe import with_threads
from outrider.tracking.provenance import collect
from outrider.wiring.stores import REPOSITORY, heads, models_uri, tracker

DATA = SHIPPED / "data"
_LOG = logging.getLogger(__name__)
MEASURED = ("workload.jsonl", "evaluation.jsonl", "sample.jsonl")  # never learnt from


def distill(settings: DistillJob, words: Sequence[str] = ()) -> int:
    """Write prompts, or learn a head. `words`: the overrides that the user typed."""
    if settings.distill.action is DistillAction.PROMPTS:
        return write_prompts(settings.distill, Console())
    return learn(settings, words)


def learn(settings: DistillJob, words: Sequence[str]) -> int:
    """Train a head, or go on; show how far its drafts go."""
    source = settings.distill.input
    backend = backend_of(settings.distill.num_workers)
    if not Path(source).exists():  # before a model is fetched for it
        raise UserError(f"distill.input: no file or folder {source}")
    notices = Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    distillation = Distillation(
        job=settings,
        target=target_of(settings.model, cache_dir, notices, models_uri(settings.tracking)),
        tracker=tracker(settings.tracking),
        registry=heads(settings.tracking) if settings.tracking.enabled else None,
        provenance=collect(REPOSITORY),
        words=words,
        cache_dir=cache_dir,
        clock=SystemClock(),
        console=notices,
        backend=backend,
    )
    report, source = distillation.run()
    show(report, distillation.head_dir, source, Console())
    return 0


def target_of(model: ModelSettings, cache_dir: Path, notices: Console, store: str = "") -> Target:
    """The model that a head is for. It is loaded when its features are wanted.

    `store`: MLflow's, of an mlflow: source.
    """

    def notice(line: str) -> None:
        notices.print(line, highlight=False, markup=False, soft_wrap=True)

    files = resolve(model.source, cache_dir=cache_dir, notice=notice, store=store)
    config = load_config(files.folder)
    return Target(
        files=files,
        config=config,
        tokenizer=HfTokenizer.load(files.folder),
        context_length=context_length(config, model.max_context_length),
        device=resolve_device(model.device),
        open=TargetRecipe(
            files=files, model=model, cache_dir=cache_dir, store=store, notice=notice
        ),
    )


@dataclass(frozen=True, kw_only=True)
class TargetRecipe:
    """Opens the target in whatever process calls it, on whatever machine."""

    files: ModelFiles  # as the driver found them
    model: ModelSettings
    cache_dir: Path
    store: str = ""  # of mlflow: sources
    notice: Notice = _LOG.info

    def __reduce__(self) -> tuple[Any, ...]:
        """A console stays where it is; places and the kind of device go along as they are here."""
        device = resolve_device(self.model.device).type
        model = replace(self.model, source=anchored(self.model.source), device=device)
        cache_dir, store = self.cache_dir.absolute(), self.store
        again = partial(TargetRecipe, files=self.files, cache_dir=cache_dir, store=store)
        return partial(again, model=model), ()

    def folder(self) -> Path:
        """UserError where this machine finds another model there."""
        if self.files.folder.exists():
            return self.files.folder
        found = resolve(
            self.model.source, cache_dir=self.cache_dir, notice=self.notice, store=self.store
        )
        if found.weights_digest != self.files.weights_digest:
            raise UserError(
                f"model.source: {self.model.source} is another model on another machine of the "
                "cluster: name a version, or a folder that all of them see"
            )
        return found.folder

    def __call__(self, layers: tuple[int, ...], num_threads: int = 0) -> FeatureModel:
        return open_model(
            self.folder(),
            with_threads(self.model, num_threads),
            digest=self.files.weights_digest,
            cache_dir=self.cache_dir,
            notice=self.notice,
            feature_layers=layers,
        )


def backend_of(num_workers: int) -> Backend:
    """UserError where there is no cluster for several."""
    if num_workers == 1:
        return OneProcess()
    if not is_given():
        raise UserError(
            f"distill.num_workers={num_workers} needs a cluster: set RAY_ADDRESS to one that "
            "runs, or leave it at 1 on one machine"
        )
    from outrider.distill.ray_backend import RayBackend  # Ray takes seconds

    return RayBackend(num_workers)


def write_prompts(settings: DistillSettings, screen: Console) -> int:
    """A batch for `jobs/bulk.py`, none of whose prompts is one that heads are measured by."""
    rows = list(expand(read_document(DATA / "distillation"), settings.num_prompts, settings.seed))
    refuse_overlap(rows, _measured())
    num = written(rows, Path(settings.out))
    screen.print(f"{num} prompts in {settings.out}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _measured() -> Iterator[dict[str, Any]]:
    for name in MEASURED:
        with (DATA / name).open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.strip())
