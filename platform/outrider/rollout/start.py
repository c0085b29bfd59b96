"""Whether a release may be tried now, and the status it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from outrider.core import UserError
from outrider.rollout.layout import IN_CHARGE
from outrider.rollout.phase import Phase
from outrider.rollout.status import Candidate, Move, Status
from outrider.serving.split import Plan


def may_start(
    candidate: Candidate,
    stable_fingerprint: str,
    active: Status | None,
    history: Sequence[Status],
    *,
    force: bool,
) -> None:
    """Raises UserError where it may not. `history`: rollouts of this service that are over.

    1. Stable's own fingerprint is refused: there is nothing to try.
    2. While a rollout is active another one is refused, but for one that `can_supersede`.
    3. A fingerprint that was rolled back, and not promoted since, needs `force`.
    4. Whatever was aborted, could not be started or was superseded may be tried again.
    """
    if candidate.fingerprint == stable_fingerprint:
        raise UserError(f"release: {candidate.fingerprint} is what stable runs already")
    if active is not None and not can_supersede(candidate, active):
        raise UserError(
            f"release: rollout {active.rollout_id} of {active.candidate.fingerprint} is active"
            f" ({active.phase}); wait for it or take it back with action=abort"
        )
    ended = _last_judged(candidate.fingerprint, history)
    if ended is not None and ended.phase is Phase.ROLLED_BACK and not force:
        raise UserError(
            f"release: {candidate.fingerprint} was rolled back by {ended.rollout_id}"
            f" ({ended.reason}); rollout.force=true tries it again"
        )


def can_supersede(candidate: Candidate, active: Status) -> bool:
    """A newer release takes the place of one that got stuck: its start or its step ran out of
    time and it is still there, undecided. Never of one that is paused, which an operator holds,
    never of one that has all traffic, and never of itself.
    """
    return (
        active.has_stalled
        and not active.is_paused
        and not active.phase.is_over
        and active.phase not in IN_CHARGE
        and active.candidate.fingerprint != candidate.fingerprint
    )


def supersede(active: Status, candidate: Candidate, now_s: float, who: str) -> tuple[Status, Move]:
    """The end of `active`, for `candidate` to begin after it."""
    reason = f"superseded by {who} with {candidate.fingerprint}; it had stalled: {active.reason}"
    after = replace(
        active,
        phase=Phase.SUPERSEDED,
        since_s=now_s,
        waits="",
        approved=False,
        has_stalled=False,
        reason=reason,
        revision=active.revision + 1,
    )
    move = Move(phase=after.phase, step=after.step, weight=0.0, reason=reason, at_s=now_s, who=who)
    return after, move


def begin(
    candidate: Candidate,
    in_force: Plan,
    history: Iterable[Status],
    *,
    rollout_id: str,
    service: str,
    stable_fingerprint: str,
    now_s: float,
    criteria: str = "",
) -> Status:
    """Pending beside the release that is stable in `in_force`, the plan that the service has.

    Its revision is above all that this service was ever told: a lower one would come too late.
    UserError where the candidate has stable's name.
    """
    if candidate.name == in_force.stable:
        raise UserError(f"release: {candidate.name} is the name of the stable release")
    seen = max([in_force.revision, *(_last_revision(status) for status in history)])
    return Status(
        rollout_id=rollout_id,
        service=service,
        candidate=candidate,
        stable=in_force.stable,
        stable_fingerprint=stable_fingerprint,
        began_s=now_s,
        since_s=now_s,
        criteria=criteria,
        revision=seen + 1,
    )


def _last_revision(status: Status) -> int:
    """One that is active is about to end, which is one more (`supersede`)."""
    return status.revision if status.phase.is_over else status.revision + 1


def _last_judged(fingerprint: str, history: Iterable[Status]) -> Status | None:
    """The last rollout of it that evidence decided."""
    judged = [
        status
        for status in history
        if status.candidate.fingerprint == fingerprint
        and status.phase in (Phase.ROLLED_BACK, Phase.PROMOTED)
    ]
    return max(judged, key=lambda status: status.since_s, default=None)
