"""A bulk job out of its settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from outrider.bulk.pipeline import run_job
from outrider.bulk.placement import cpus_per_worker
from outrider.bulk.release import make_release
from outrider.bulk.screen import show_report
from outrider.cluster.cores import num_cores
from outrider.config.schema import BulkJob
from outrider.core import UserError
from outrider.models import default_cache_dir
from outrider.recipe import EngineRecipe, with_threads
from outrider.tracking.provenance import collect
from outrider.wiring.parts import as_registered, fetch
from outrider.wiring.stores import BEACONS, REPOSITORY, tracker


def bulk(settings: BulkJob, words: Sequence[str] = ()) -> int:
    """Run one bulk job and show its report. `words`: the overrides that the user typed."""
    notices, screen = Console(stderr=True), Console()
    if not Path(settings.bulk.input).exists():  # before a model is fetched for it
        raise UserError(f"bulk.input: no file {settings.bulk.input}")
    settings, registered = as_registered(settings, words)
    cache_dir = default_cache_dir(os.environ)
    target, draft = fetch(
        settings.model, settings.draft, cache_dir, notices, settings.tracking.models_uri
    )
    release = make_release(settings, target, draft, collect(REPOSITORY), words)
    if registered:
        release = registered.confirmed(release, settings.accept)
    report = run_job(
        settings,
        make_engine=engine_recipe(settings, cache_dir),
        release=release,
        tracker=tracker(settings.tracking),
        console=notices,
        beacons_dir=Path(settings.bulk.beacons_dir or BEACONS).absolute(),
    )
    show_report(report, screen)
    return 0


def engine_recipe(settings: BulkJob, cache_dir: Path) -> EngineRecipe:
    """The engine of one bulk worker: its threads are the cores that the worker was given."""
    num_threads = cpus_per_worker(settings.bulk, num_cores())
    draft = settings.draft
    if draft.model is not None:
        draft = replace(draft, model=with_threads(draft.model, num_threads))
    return EngineRecipe(
        model=with_threads(settings.model, num_threads),
        draft=draft,
        engine=settings.engine,
        cache_dir=cache_dir,
        store=settings.tracking.models_uri,
        trace_dir=Path(settings.bulk.job_dir).absolute() / "trace"
        if settings.engine.trace
        else None,
    )
