"""Who is measured: a release under a name, and how its engine is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outrider.bulk.ports import ChatTokenizer
from outrider.core import Rule
from outrider.tracking.release import Release

if TYPE_CHECKING:  # torch: not for who only names contenders
    from outrider.engine.runner import Runner

OpenEngine = Callable[[], tuple["Runner", ChatTokenizer]]
"""Opens the engine in the process that calls it. Picklable."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A release in a trial. A baseline decodes plainly what its contenders speculate on."""

    name: str  # as tables show it, unique in a trial: what the user wrote, or `plain`
    release: Release
    open_engine: OpenEngine
    baseline: str = ""  # name of the plain contender it is compared with; empty: it is one
    rule: Rule = Rule.COUPLED  # ratio: sampled outputs need not equal the baseline's

    @property
    def is_baseline(self) -> bool:
        return not self.baseline
