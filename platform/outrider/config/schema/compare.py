"""What is read out of MLflow, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.config.schema.tracking import TrackingSettings


class CompareAction(Enum):
    """What jobs/compare.py does."""

    BOARD = "board"  # print the leaderboard
    DIFF = "diff"  # which keys of two releases differ, and what it did to each figure
    REPORT = "report"  # write an HTML page with plots


@dataclass(frozen=True, kw_only=True)
class CompareSettings:
    """What is read out of MLflow, and how it is shown (`outrider.compare`)."""

    action: CompareAction = CompareAction.BOARD
    where: tuple[str, ...] = ()  # conditions, all of which hold: in_flight=8, speedup_ratio>1
    sort: str = "speedup_ratio"  # figure; the best on top
    top: int = 20  # rows
    kinds: tuple[str, ...] = ("contender",)  # of runs: contender, bulk, serve, ...
    releases: tuple[str, ...] = ()  # action=diff: two; action=report: those shown; []: all
    out: str = "runs/report.html"  # action=report: file
    champion: str = ""  # release to make champion; the one from before becomes previous
    challenger: str = ""  # release to make challenger


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """Root of `conf/compare.yaml`."""

    tracking: TrackingSettings
    compare: CompareSettings
