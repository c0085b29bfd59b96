"""What an operator's commands do to a rollout. What is refused moves nothing: `reason` says why."""

from __future__ import annotations

from dataclasses import replace

from outrider.rollout.command import Command, Verb
from outrider.rollout.layout import IN_CHARGE
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.rollout.turn import Look, Turn, enter, stay


def obey(status: Status, command: Command, look: Look) -> Turn:
    """Nothing where it is over, and nothing twice."""
    if status.phase.is_over:
        return status, ()
    return _OBEY[command.verb](status, command, look)


def was_refused(status: Status, verb: Verb) -> bool:
    """Whether the last that happened was that it was."""
    return status.reason.startswith(_refusal(verb))


def _abort(status: Status, command: Command, look: Look) -> Turn:
    if status.phase in IN_CHARGE and not look.can_go_back:
        return _refuse(status, command, f"{status.stable} is not there, or the service is away")
    return enter(status, look, Phase.ABORTED, _said(command, "aborted"), who=command.who)


def _promote(status: Status, command: Command, look: Look) -> Turn:
    if status.phase in IN_CHARGE:
        return _refuse(status, command, "it has all traffic already")
    if status.phase is Phase.PENDING or not look.is_ready:
        return _refuse(status, command, "the candidate is not ready")
    reason, told = _said(command, "promoted past its gates"), look.seen.judgement
    return enter(status, look, Phase.PROMOTING, reason, who=command.who, judgement=told)


def _pause(status: Status, command: Command, look: Look) -> Turn:
    if status.is_paused:
        return status, ()
    reason = _said(command, "paused")
    return stay(status, look, reason, who=command.who, is_paused=True, paused_s=look.now_s)


def _resume(status: Status, command: Command, look: Look) -> Turn:
    if not status.is_paused:
        return status, ()
    since_s = look.now_s - status.elapsed_s(look.now_s)
    reason = _said(command, "resumed")
    return stay(
        status, look, reason, who=command.who, is_paused=False, paused_s=0.0, since_s=since_s
    )


def _approve(status: Status, command: Command, look: Look) -> Turn:
    if not status.waits:
        return _refuse(status, command, "nothing waits for it")
    reason = _said(command, "approved")
    return stay(status, look, reason, who=command.who, approved=True, waits="")


def _refuse(status: Status, command: Command, why: str) -> Turn:
    return replace(status, reason=f"{_refusal(command.verb)}: {why}"), ()


def _refusal(verb: Verb) -> str:
    return f"{verb} was refused"


def _said(command: Command, done: str) -> str:
    why = f": {command.why}" if command.why else ""
    return f"{done} by {command.who}{why}"


_OBEY = {
    Verb.ABORT: _abort,
    Verb.PROMOTE: _promote,
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
    Verb.APPROVE: _approve,
}
