"""One change of a rollout: the status after it, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from outrider.config.schema import PlanSettings
from outrider.rollout.layout import weight_of
from outrider.rollout.observation import Observation
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.status import Move, Status
from outrider.rollout.verdict import Finding, Judgement

Turn = tuple[Status, tuple[Move, ...]]


@dataclass(frozen=True, slots=True)
class Look:
    """What every rule decides on."""

    seen: Observation
    plan: PlanSettings
    now_s: float

    @property
    def is_ready(self) -> bool:
        return self.seen.health is Health.READY

    @property
    def can_go_back(self) -> bool:
        """Behind a promotion: whether the old stable could take all traffic again."""
        return self.seen.health is not None and self.seen.is_stable_there

    def is_late(self, status: Status) -> bool:
        return status.elapsed_s(self.now_s) >= self.plan.max_s


def enter(
    status: Status,
    look: Look,
    phase: Phase,
    reason: str,
    *,
    step: int | None = None,
    who: str = "",
    judgement: Judgement | None = None,
) -> Turn:
    """Another phase or step: its clock, its approval and its stall begin anew.

    The step is kept where none is named: an end says how far it came.
    """
    after = replace(
        status,
        phase=phase,
        step=status.step if step is None else step,
        since_s=look.now_s,
        is_paused=False,
        paused_s=0.0,
        waits="",
        approved=False,
        has_stalled=False,
        reason=reason,
    )
    return after, (_move(after, look, who, judgement),)


def stay(
    status: Status,
    look: Look,
    reason: str,
    *,
    who: str = "",
    judgement: Judgement | None = None,
    **changes: Any,
) -> Turn:
    """The same step, and something to tell of it."""
    after = replace(status, reason=reason, **changes)
    return after, (_move(after, look, who, judgement),)


def stall(status: Status, look: Look, reason: str, **changes: Any) -> Turn | None:
    """Told once a step."""
    if status.has_stalled:
        return None
    return stay(status, look, reason, judgement=look.seen.judgement, has_stalled=True, **changes)


def _move(after: Status, look: Look, who: str, judgement: Judgement | None) -> Move:
    return Move(
        phase=after.phase,
        step=after.step,
        weight=weight_of(after, look.plan),
        reason=after.reason,
        at_s=look.now_s,
        who=who,
        evidence=tuple(_plain(found) for found in judgement.findings) if judgement else (),
    )


def _plain(found: Finding) -> Mapping[str, Any]:
    return {**asdict(found), "verdict": found.verdict.value}
