"""Settings -> what shows what was measured."""

from __future__ import annotations

from rich.console import Console

from outrider.compare.board_screen import WIDTH
from outrider.compare.command import Comparison
from outrider.config.schema import CompareJob
from outrider.core import UserError
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.tracking.store_uri import sqlite_uri
from outrider.wiring.parts import RUNS, registry


def compare(settings: CompareJob) -> int:
    """Show the leaderboard, a diff or a report; hand out the names of releases."""
    tracking = settings.tracking
    if not tracking.enabled:
        raise UserError("tracking.enabled=false: what was measured is read out of MLflow")
    history = MlflowHistory(
        uri=tracking.uri or sqlite_uri(RUNS / "outrider.db"), experiment=tracking.experiment
    )
    screen = Console()
    if not screen.is_terminal:  # a file or a pipe takes lines of any length
        screen.width = max(WIDTH, screen.width)
    return Comparison(
        settings=settings.compare,
        history=history,
        registry=registry(tracking),
        screen=screen,
    ).run()
