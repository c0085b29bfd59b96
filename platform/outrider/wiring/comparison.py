"""Settings -> what shows what was measured."""

from __future__ import annotations

from rich.console import Console

from outrider.compare.board_screen import SORT_WIDTH, WIDTH
from outrider.compare.command import Comparison
from outrider.config.schema import CompareJob
from outrider.core import UserError
from outrider.wiring.stores import history, registry


def compare(settings: CompareJob) -> int:
    """Show the leaderboard, a diff or a report; hand out the names of releases."""
    tracking = settings.tracking
    if not tracking.enabled:
        raise UserError("tracking.enabled=false: what was measured is read out of MLflow")
    screen = Console()
    if not screen.is_terminal:  # a file or a pipe takes lines of any length
        screen.width = max(WIDTH + SORT_WIDTH, screen.width)
    return Comparison(
        settings=settings.compare,
        history=history(tracking),
        registry=registry(tracking),
        screen=screen,
    ).run()
