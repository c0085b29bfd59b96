"""Where runs and releases are recorded. It needs no model, so that looking costs no loading."""

from __future__ import annotations

import os

from outrider.config.folders import SHIPPED
from outrider.config.schema import TrackingSettings
from outrider.models.mlflow_source import STORE
from outrider.tracking.heads import HeadRegistry
from outrider.tracking.history import History
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_heads import MlflowHeads
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.registry import Registry
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import NoTracker, Tracker

REPOSITORY = SHIPPED.parent
RUNS = REPOSITORY / "runs"
BEACONS = RUNS / "jobs"  # where bulk jobs say that they are there
ROLLOUTS = sqlite_uri(RUNS / "rollouts.db")  # where rollouts are written, and read by the console


def tracker(settings: TrackingSettings) -> Tracker:
    if not settings.enabled:
        return NoTracker()
    return MlflowTracker(
        uri=uri_of(settings), experiment=settings.experiment, spool_dir=RUNS / "spool"
    )


def registry(settings: TrackingSettings) -> Registry:
    """Where releases are, whether or not the run itself is recorded."""
    return MlflowRegistry(
        MlflowConnection(
            uri=uri_of(settings), experiment=settings.experiment, spool_dir=RUNS / "spool"
        )
    )


def heads(settings: TrackingSettings) -> HeadRegistry:
    """Where draft heads are."""
    return MlflowHeads(
        MlflowConnection(
            uri=uri_of(settings), experiment=settings.experiment, spool_dir=RUNS / "spool"
        )
    )


def history(settings: TrackingSettings) -> History:
    return MlflowHistory(uri=uri_of(settings), experiment=settings.experiment)


def uri_of(settings: TrackingSettings) -> str:
    return settings.uri or sqlite_uri(RUNS / "outrider.db")


def models_uri(settings: TrackingSettings) -> str:
    """Where `mlflow:` sources are: by default beside the runs, where jobs/distill.py puts heads."""
    return settings.models_uri or os.environ.get(STORE, "") or uri_of(settings)
