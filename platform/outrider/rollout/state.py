"""What a rollout does next. Pure: the status, one look, the plan and the time decide."""

from __future__ import annotations

from dataclasses import replace

from outrider.config.schema import OnStall, PlanSettings
from outrider.rollout.layout import IN_CHARGE
from outrider.rollout.observation import Observation
from outrider.rollout.orders import obey
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health
from outrider.rollout.status import Move, Status
from outrider.rollout.step import from_confirming, from_step
from outrider.rollout.turn import Look, Turn, enter, stall
from outrider.rollout.verdict import Judgement, Verdict

# Its guard sees the confirmation prompts too, which are no user's traffic.
MEASURED = frozenset({Phase.SHADOW, Phase.CANARY})


def advance(status: Status, seen: Observation, plan: PlanSettings, now_s: float) -> Turn:
    """The status after one look, and what is to be told. `revision` grows by one where it changed.

    1. What is over stays as it is, and a look under another revision decides nothing.
    2. Operators' commands, in the order they came. A phase that one of them changed ends the look:
       its evidence was of the phase before.
       Abort works until it is over; behind a promotion only while the old stable is there.
       Promote passes all gates, but not before the candidate is ready. Approve counts only where
       something waits for it.
    3. Failures, also while it is paused: safety before patience. A failing verdict, a lost
       candidate or, in shadow and canary, one that fell back to plain decoding when stable did not
       gives stable all traffic at once; a candidate that never started has failed, and so has a
       rollout whose service was begun anew with another stable release.
    4. Paused, service away, or stable away beside a trial: it stays as it is.
    5. The way forward, one phase or step a look. A step is left when the candidate is ready,
       every gate passes, there are enough samples, its least time is over and, where the plan
       says so, an operator approved. Undecided when its time is over: the plan's `on_stall`.
    """
    if status.phase.is_over or seen.revision != status.revision:
        return status, ()
    look = Look(seen, plan, now_s)
    after, moves = _obey_all(status, look)
    if after.phase is status.phase:
        after, more = _failure(after, look) or _forward(after, look) or (after, ())
        moves = (*moves, *more)
    if after == status:
        return status, ()
    return replace(after, revision=status.revision + 1), moves


def _obey_all(status: Status, look: Look) -> Turn:
    moves: tuple[Move, ...] = ()
    for command in look.seen.commands:
        status, more = obey(status, command, look)
        moves = (*moves, *more)
    return status, moves


def _failure(status: Status, look: Look) -> Turn | None:
    if look.seen.begun_anew:
        return enter(status, look, Phase.FAILED, look.seen.begun_anew)
    why = _what_failed(status, look)
    if not why:
        return None
    if status.phase in IN_CHARGE and not look.can_go_back:
        return stall(status, look, f"{why}; {status.stable} is not there to go back to")
    never_began = status.phase in (Phase.DEPLOYING, Phase.WARMING)
    end = Phase.FAILED if never_began else Phase.ROLLED_BACK
    return enter(status, look, end, why, judgement=_evidence(status, look))


def _what_failed(status: Status, look: Look) -> str:
    """Empty where nothing did."""
    evidence = _evidence(status, look)
    if evidence.verdict is Verdict.FAIL:
        return evidence.reason
    if look.seen.health is Health.FAILED and status.phase is not Phase.PENDING:
        return f"the candidate is lost: {look.seen.failure or 'the service does not say why'}"
    if look.seen.fallen and status.phase in MEASURED:
        return f"the candidate fell back to plain decoding, stable did not: {look.seen.fallen}"
    return ""


def _evidence(status: Status, look: Look) -> Judgement:
    """With what the confirmation found: the canary's gates hold while it is decoded."""
    confirmation = look.seen.confirmation if status.phase is Phase.CONFIRMING else None
    found = confirmation.findings if confirmation is not None else ()
    return Judgement(findings=(*look.seen.judgement.findings, *found))


def _forward(status: Status, look: Look) -> Turn | None:
    is_away = look.seen.health is None
    is_alone = status.phase not in IN_CHARGE and not look.seen.is_stable_there
    if status.is_paused or is_away or is_alone:
        return None
    return _FORWARD[status.phase](status, look)


def _from_pending(status: Status, look: Look) -> Turn | None:
    if not look.seen.pre_answered:
        return None
    return enter(status, look, Phase.DEPLOYING, f"it is deployed beside {status.stable}")


def _from_deploying(status: Status, look: Look) -> Turn | None:
    if look.is_ready:
        return enter(status, look, Phase.WARMING, "the candidate is ready")
    return _not_started(status, look, "the candidate is not ready")


def _from_warming(status: Status, look: Look) -> Turn | None:
    if not (look.is_ready and look.seen.has_warmed):
        return _not_started(status, look, "the candidate has not answered")
    first = Phase.SHADOW if look.plan.shadow_share else Phase.CANARY
    return enter(status, look, first, "the candidate answered prompts of its own")


def _not_started(status: Status, look: Look, why: str) -> Turn | None:
    """There is nothing that an operator could approve: it is told, or it has failed."""
    if not look.is_late(status):
        return None
    reason = f"{why} after {look.plan.max_s:g} s"
    if look.plan.on_stall is OnStall.ROLLBACK:
        return enter(status, look, Phase.FAILED, reason)
    return stall(status, look, reason)


def _from_promoting(status: Status, look: Look) -> Turn | None:
    if not look.seen.is_settled:
        return None
    reason = f"{status.stable} stays warm for {look.plan.keep_s:g} s"
    return enter(status, look, Phase.KEEPING, reason)


def _from_keeping(status: Status, look: Look) -> Turn | None:
    if not look.is_ready or status.elapsed_s(look.now_s) < look.plan.keep_s:
        return None
    return enter(
        status, look, Phase.PROMOTED, f"its {look.plan.keep_s:g} s beside the old stable are over"
    )


_FORWARD = {
    Phase.PENDING: _from_pending,
    Phase.DEPLOYING: _from_deploying,
    Phase.WARMING: _from_warming,
    Phase.SHADOW: from_step,
    Phase.CANARY: from_step,
    Phase.CONFIRMING: from_confirming,
    Phase.PROMOTING: _from_promoting,
    Phase.KEEPING: _from_keeping,
}
