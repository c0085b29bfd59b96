"""A draft head out of its settings: prompts to learn from, then what is learnt."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.config.folders import SHIPPED
from outrider.config.schema import DistillAction, DistillJob, DistillSettings, ModelSettings
from outrider.core import SystemClock, UserError
from outrider.distill.corpus import written
from outrider.distill.document import read_document
from outrider.distill.job import Distillation
from outrider.distill.material import Target
from outrider.distill.overlap import refuse_overlap
from outrider.distill.prompts import expand
from outrider.distill.report import show
from outrider.engine.runtimes import open_model, resolve_device
from outrider.engine.runtimes.loading import context_length, load_config
from outrider.models import HfTokenizer, default_cache_dir, resolve
from outrider.tracking.provenance import collect
from outrider.wiring.stores import REPOSITORY, heads, models_uri, tracker

DATA = SHIPPED / "data"
MEASURED = ("workload.jsonl", "evaluation.jsonl", "sample.jsonl")  # never learnt from


def distill(settings: DistillJob, words: Sequence[str] = ()) -> int:
    """Write prompts, or learn a head. `words`: the overrides that the user typed."""
    if settings.distill.action is DistillAction.PROMPTS:
        return write_prompts(settings.distill, Console())
    return learn(settings, words)


def learn(settings: DistillJob, words: Sequence[str]) -> int:
    """Train a head, or go on; show how far its drafts go."""
    source = settings.distill.input
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
        open=lambda layers: open_model(
            files.folder,
            model,
            digest=files.weights_digest,
            cache_dir=cache_dir,
            notice=notice,
            feature_layers=layers,
        ),
    )


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
