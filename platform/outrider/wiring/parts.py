"""What several jobs need: models on this disk, the release that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from outrider.config.folders import Folders
from outrider.config.overridden import overridden
from outrider.config.schema import (
    BenchJob,
    BulkJob,
    DraftSettings,
    ModelSettings,
    ServeJob,
    SweepJob,
)
from outrider.models import HeadFiles, ModelFiles, pinned, pinned_head, resolve, resolve_head
from outrider.models.source import anchored
from outrider.recipe import HEADS
from outrider.tracking.rebuild import JobT, Registered, check_words
from outrider.wiring.shipped import with_shipped_head
from outrider.wiring.stores import models_uri, registry

PinnedT = TypeVar("PinnedT", BulkJob, ServeJob, BenchJob, SweepJob)


def fetch(
    model: ModelSettings, draft: DraftSettings, cache_dir: Path, notices: Console, store: str
) -> tuple[ModelFiles, ModelFiles | HeadFiles | None]:
    """What decodes and what drafts, on this machine's disk. `store`: `stores.models_uri`."""

    def notice(line: str) -> None:
        notices.print(line, highlight=False, markup=False, soft_wrap=True)

    target = resolve(model.source, cache_dir=cache_dir, notice=notice, store=store)
    if draft.model is not None:
        source = draft.model.source
        return target, resolve(source, cache_dir=cache_dir, notice=notice, store=store)
    if not draft.head.source:
        return target, None
    return target, resolve_head(
        draft.head.source, shipped=HEADS, cache_dir=cache_dir, notice=notice, store=store
    )


def as_registered(settings: JobT, words: Sequence[str]) -> tuple[JobT, Registered | None]:
    """The job with the release that it names, if it names one, and weights that stay the same.

    `words`: what the user typed.
    """
    if not settings.release:
        return with_pinned_sources(settings), None
    job = type(settings)
    groups = Folders().groups(job.__name__.removesuffix("Job").lower())
    given = overridden(job, groups, words)
    check_words(settings.release, given)
    registered = Registered.found(registry(settings.tracking), settings.release)
    return with_pinned_sources(registered.rebuilt(settings, given)), registered


def with_pinned_sources(settings: PinnedT) -> PinnedT:
    """Sources that mean the same in every process of the job, wherever that works: aliases and the
    head that is shipped become what they mean now, paths start at the root, and the store is named
    (a replica may live where MLFLOW_TRACKING_URI says otherwise).
    """
    store = models_uri(settings.tracking)
    model = _pinned(settings.model, store)
    draft = with_shipped_head(model, settings.draft, store)
    head = replace(draft.head, source=anchored(pinned_head(draft.head.source, store)))
    draft = replace(draft, head=head)
    if draft.model is not None:
        draft = replace(draft, model=_pinned(draft.model, store))
    tracking = replace(settings.tracking, models_uri=store)
    return replace(settings, draft=draft, model=model, tracking=tracking)


def _pinned(model: ModelSettings, store: str) -> ModelSettings:
    return replace(model, source=anchored(pinned(model.source, store)))
