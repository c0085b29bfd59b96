"""How a shadow, a step of the canary and the confirmation are left."""

from __future__ import annotations

from outrider.config.schema import OnStall
from outrider.rollout.layout import weight_of
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.rollout.turn import Look, Turn, enter, stall, stay
from outrider.rollout.verdict import Judgement, Verdict


def from_step(status: Status, look: Look) -> Turn | None:
    """Out of a shadow or a step of the canary; None: nothing is to be done or told."""
    lack = _lack(status, look)
    if lack:
        return _undecided(status, look, lack, look.seen.judgement) if look.is_late(status) else None
    if weight_of(status, look.plan) in look.plan.approvals and not status.approved:
        return _ask(status, look)
    return _next(status, look, look.seen.judgement)


def from_confirming(status: Status, look: Look) -> Turn | None:
    """Its prompts are decoded once: what they leave undecided has stalled, however early."""
    found = look.seen.confirmation
    if found is None:
        lack = "the confirmation prompts are not decoded"
        return _undecided(status, look, lack, Judgement()) if look.is_late(status) else None
    if found.verdict is not Verdict.PASS:
        return _undecided(status, look, found.reason, found)
    return _next(status, look, found) if look.is_ready else None


def _lack(status: Status, look: Look) -> str:
    """What it takes before this step is left by itself; empty: nothing."""
    if not look.is_ready:
        return "the candidate is not ready"
    if look.seen.judgement.verdict is not Verdict.PASS:
        return look.seen.judgement.reason
    return _lack_of_samples(status, look) or _lack_of_time(status, look)


def _lack_of_samples(status: Status, look: Look) -> str:
    seen, least = look.seen, look.plan.min_samples
    if status.phase is Phase.SHADOW:
        told = f"{seen.num_shadow} mirrored requests of {least}"
        return told if seen.num_shadow < least else ""
    told = f"{seen.num_stable} and {seen.num_candidate} requests of {least} in each arm"
    return told if min(seen.num_stable, seen.num_candidate) < least else ""


def _lack_of_time(status: Status, look: Look) -> str:
    left_s = look.plan.min_s - status.elapsed_s(look.now_s)
    return f"{left_s:.0f} s of {look.plan.min_s:g}" if left_s > 0 else ""


def _ask(status: Status, look: Look) -> Turn | None:
    """Once; an approval given before the gates passed would have been one of nothing."""
    if status.waits:
        return None
    weight = weight_of(status, look.plan)
    reason = f"every gate is passed; an operator has to approve what follows {100 * weight:g} %"
    return stay(status, look, reason, judgement=look.seen.judgement, waits=reason)


def _undecided(status: Status, look: Look, lack: str, judgement: Judgement) -> Turn | None:
    """Its time is over. An approval of before the stall was one of passed gates: asked anew."""
    policy = look.plan.on_stall
    reason = f"undecided after {status.elapsed_s(look.now_s):.0f} s: {lack}"
    if policy is OnStall.ROLLBACK:
        return enter(status, look, Phase.ROLLED_BACK, reason, judgement=judgement)
    if policy is OnStall.HOLD:
        return stall(status, look, reason)
    if not (status.has_stalled and status.approved):
        return stall(status, look, reason, approved=False, waits=reason)
    return _next(status, look, judgement, "approved, though undecided") if look.is_ready else None


def _next(status: Status, look: Look, judgement: Judgement, reason: str = "") -> Turn:
    reason = reason or judgement.reason
    phase, step = _after(status, look)
    return enter(status, look, phase, reason, step=step, judgement=judgement)


def _after(status: Status, look: Look) -> tuple[Phase, int]:
    if status.phase is Phase.SHADOW:
        return Phase.CANARY, 0
    if status.phase is Phase.CANARY and status.step + 1 < len(look.plan.weights):
        return Phase.CANARY, status.step + 1
    if status.phase is Phase.CANARY and look.plan.confirm:
        return Phase.CONFIRMING, status.step
    return Phase.PROMOTING, status.step
