"""What the console reads beside the gateway, one Protocol a source, with a null object each.

All of them block: they are called in a thread, one call of each at a time, about once a second
however many pages are open. `Fault` says in one line what does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from outrider.bulk.glance import JobGlance
from outrider.console.order import Order
from outrider.console.snapshot import RunsView
from outrider.core import UserError
from outrider.rollout.outlook import Outlook, Past
from outrider.rollout.phase import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutsSeen:
    """One look at the rollouts of this gateway."""

    newest: Outlook | None = None  # the active one, else the newest
    past: tuple[Past, ...] = ()  # newest first, a few
    num_by_phase: Mapping[Phase, int] = field(default_factory=dict)  # of this gateway, all


class Rollouts(Protocol):
    """`rollouts.StoredRollouts(database, url)`: `url` of the gateway, as the rollouts name it."""

    def look(self) -> RolloutsSeen:
        """Nothing where there is no database yet: looking never makes one."""
        ...

    def order(self, order: Order) -> str:
        """Write it down for whoever controls the active rollout; a sentence that says so.

        UserError where it can't be asked now, or another rollout is active than the one it names.
        """
        ...


class BulkJobs(Protocol):
    """`bulk_jobs.LitJobs(beacons_dir)`."""

    def look(self) -> tuple[JobGlance, ...]:
        """Newest first. None where there is no folder of beacons."""
        ...


class Runs(Protocol):
    """`links.KeptRuns(kept, view)`: what MLflow has of this server, and where to look at it."""

    @property
    def view(self) -> RunsView: ...

    def run_id(self) -> str:
        """Of this server; empty where it is not known, or not yet."""
        ...


class NoRollouts:
    """There are none."""

    def look(self) -> RolloutsSeen:
        return RolloutsSeen()

    def order(self, order: Order) -> str:
        raise UserError(f"{order.verb}: this service has no active rollout")


class NoBulkJobs:
    """There are none."""

    def look(self) -> tuple[JobGlance, ...]:
        return ()


class NoRuns:
    """Nothing is recorded."""

    view = RunsView()

    def run_id(self) -> str:
        return ""
