"""What several jobs need: models on this disk, the store of their runs."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from outrider.config.folders import SHIPPED
from outrider.config.schema import DraftSettings, ModelSettings, TrackingSettings
from outrider.models import ModelFiles, resolve
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import NoTracker, Tracker

REPOSITORY = SHIPPED.parent
RUNS = REPOSITORY / "runs"


def fetch(
    model: ModelSettings, draft: DraftSettings, cache_dir: Path, notices: Console
) -> tuple[ModelFiles, ModelFiles | None]:
    """What decodes and what drafts, on this machine's disk."""

    def notice(line: str) -> None:
        notices.print(line, highlight=False, markup=False, soft_wrap=True)

    target = resolve(model.source, cache_dir=cache_dir, notice=notice)
    if draft.model is None:
        return target, None
    return target, resolve(draft.model.source, cache_dir=cache_dir, notice=notice)


def tracker(settings: TrackingSettings) -> Tracker:
    if not settings.enabled:
        return NoTracker()
    return MlflowTracker(
        uri=settings.uri or sqlite_uri(RUNS / "outrider.db"),
        experiment=settings.experiment,
        spool_dir=RUNS / "spool",
    )
