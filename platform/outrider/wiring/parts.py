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
from outrider.wiring.stores import registry

PinnedT = TypeVar("PinnedT", BulkJob, ServeJob, BenchJob, SweepJob)


def fetch(
    model: ModelSettings, draft: DraftSettings, cache_dir: Path, notices: Console
) -> tuple[ModelFiles, ModelFiles | HeadFiles | None]:
    """What decodes and what drafts, on this machine's disk."""

    def notice(line: str) -> None:
        notices.print(line, highlight=False, markup=False, soft_wrap=True)

    target = resolve(model.source, cache_dir=cache_dir, notice=notice)
    if draft.model is not None:
        return target, resolve(draft.model.source, cache_dir=cache_dir, notice=notice)
    if not draft.head.source:
        return target, None
    return target, resolve_head(
        draft.head.source, shipped=HEADS, cache_dir=cache_dir, notice=notice
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
    """Sources that mean the same in every process of the job, wherever that works: an alias becomes
    the version that it means now, a path starts at the root.
    """
    model, draft = settings.model, settings.draft
    head = replace(draft.head, source=anchored(pinned_head(draft.head.source)))
    draft = replace(draft, head=head)
    if draft.model is not None:
        draft = replace(draft, model=_pinned(draft.model))
    return replace(settings, draft=draft, model=_pinned(model))


def _pinned(model: ModelSettings) -> ModelSettings:
    return replace(model, source=anchored(pinned(model.source)))
