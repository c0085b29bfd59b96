"""All that the page /console shows, as `GET /console/data` tells it. Plain data.

Times are seconds since 1970, durations seconds, shares and ratios from 0 to 1 where nothing else
is said. What is not known is null, never 0. What could not be asked is named in `notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from outrider.bulk.glance import JobGlance
from outrider.rollout.outlook import Outlook, Past


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the replicas of a release did in one span of time. Counts are of that span."""

    release: str
    at_s: float  # the span's end
    span_s: float
    num_replicas: int = 0
    num_running: int = 0  # rows, at the end of the span
    num_waiting: int = 0
    emitted: int = 0  # tokens
    drafted: int = 0
    evaluated: int = 0
    accepted: int = 0
    num_rounds: int = 0  # of rows
    rounds_s: float = 0.0  # that engines spent in rounds, summed over replicas
    plain_rounds_s: float = 0.0  # that plain decoding of the same tokens would have taken
    rounds_by_draft_length: tuple[int, ...] = ()  # [draft length from 0]
    position_evaluated: tuple[int, ...] = ()  # [draft position from 0] tested
    position_accepted: tuple[int, ...] = ()
    guard_phase: str = ""  # closed | open | probing; empty: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """The gateway itself."""

    name: str  # of the first release
    model: str
    url: str
    version: str  # of Outrider
    began_s: float  # another value than before: it is another server, whose charts begin anew
    num_calls: int = 0  # under way
    is_leaving: bool = False  # it stops once they have ended
    run_id: str = ""  # MLflow's, of this server


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmView:
    """One side of the split."""

    arm: str  # stable | candidate
    release: str
    weight: float  # share that the plan gives it
    achieved_ratio: float | None  # of the requests since the plan gave it that share
    num_requests: int  # of those, forced ones apart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """A release and its guard."""

    name: str
    fingerprint: str
    health: str  # starting | ready | failed ...
    message: str  # why, where it is not ready
    guard_phase: str  # closed | open | probing; empty: nobody watches it
    guard_sentence: str
    guard_reason: str  # of the last change
    guard_since_s: float | None
    guard_wait_s: float  # before it tries again
    num_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """One engine."""

    release: str
    replica: str
    mode: str  # speculative | plain: what it was told
    max_draft_length: int | None  # as an operator said; null: the release's own
    breaker_phase: str  # closed | open | half_open; empty: it does not answer
    breaker_sentence: str
    num_open_rows: int  # rows whose own breaker is not closed
    num_running: int
    num_waiting: int
    max_waiting: int  # one more is a 429
    num_free_blocks: int
    num_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
    """Where MLflow shows a run: `url` + `/#/runs/` + run id; without a `url`, the command."""

    url: str = ""
    open_command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    at_s: float
    service: ServiceView
    arms: tuple[ArmView, ...] = ()
    releases: tuple[ReleaseView, ...] = ()
    replicas: tuple[ReplicaView, ...] = ()
    points: tuple[Point, ...] = ()  # oldest first; only those after `?after=` (a time)
    period_s: float = 2.0  # between two points of a release
    keep_s: float = 900.0  # older points are not kept
    rollout: Outlook | None = None  # the active one, else the newest
    past: tuple[Past, ...] = ()  # newest first
    jobs: tuple[JobGlance, ...] = ()  # newest first
    runs: RunsView = RunsView()
    needs_key: bool = False  # actions and data ask for the admin key
    notes: tuple[str, ...] = ()  # what can't be told now, and why: a sentence each
