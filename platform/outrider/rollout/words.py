"""A rollout in words: where it stands, why, what it waits for, and what an operator can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from outrider.config.schema import OnStall, PlanSettings
from outrider.rollout.command import Verb
from outrider.rollout.layout import IN_CHARGE, TRIED, UNSEEN, weight_of
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move, Status
from outrider.rollout.verdict import Judgement

SHORT = 12  # digits of a fingerprint that are shown
_NUM_DIFFERING = 3  # answers that differ, of a move
_NUM_MOVES = 5  # the latest ones, for how it came here


def explain(
    status: Status,
    moves: Sequence[Move],
    judgement: Judgement,
    plan: PlanSettings,
    now_s: float,
) -> list[str]:
    """Lines for a screen. `moves` oldest first; `judgement` of this step, as far as it is known."""
    return [
        f"Rollout {status.rollout_id}: {parties(status)}, {status.service}",
        f"{_place(status.phase, status.step, weight_of(status, plan), len(plan.weights))}"
        f"{_since(status, now_s)}. {status.phase.sentence}",
        *([f"Why: {status.reason}"] if status.reason else []),
        *_paused(status),
        *(f"Next: {text}" for text in ahead(status, plan, now_s)),
        *_evidence(status, moves, judgement),
        *_history(moves),
        *_choices(status),
    ]


def parties(status: Status) -> str:
    """Who is tried beside whom."""
    return (
        f"{_short(status.candidate.name, status.candidate.fingerprint)}"
        f" beside {_short(status.stable, status.stable_fingerprint)}"
    )


def of_past(status: Status) -> str:
    """One rollout among those of a service."""
    return (
        f"{_time(status.began_s)}  {status.rollout_id}"
        f"  {_short(status.candidate.name, status.candidate.fingerprint)}"
        f"  {status.phase.value}: {status.reason}"
    )


def line(move: Move) -> str:
    """One move: UTC time, where it stands from then on, and why; an operator is named there."""
    return f"{_time(move.at_s)} {_place(move.phase, move.step, move.weight)}: {move.reason}"


def lines(move: Move) -> list[str]:
    """`line`, and what the move was decided on."""
    return [line(move), *map(_finding, move.evidence), *_shown(move)]


def _shown(move: Move) -> Iterator[str]:
    """What the step had besides its findings."""
    if move.achieved_ratio is not None:
        yield f"  the candidate answered {move.achieved_ratio:.1%} of the step's requests"
    for one in move.differing[:_NUM_DIFFERING]:
        margin = "unknown" if one["margin"] is None else f"{one['margin']:.3g} logits"
        yield (
            f"  {one['likeness'].replace('_', ' ')}: request {one['request_id']} parts at token"
            f" {one['position']}, margin {margin}"
        )


def _short(name: str, fingerprint: str) -> str:
    return f"{name} ({fingerprint[:SHORT]})"


def _place(phase: Phase, step: int, weight: float, num_steps: int = 0) -> str:
    share = f"{100 * weight:g} % of the keys"
    if phase is Phase.CANARY:
        of = f" of {num_steps}" if num_steps else ""
        return f"canary, step {step + 1}{of}, {share}"
    name = phase.value.replace("_", " ")
    return f"{name}, {share}" if phase is Phase.CONFIRMING else name


def _since(status: Status, now_s: float) -> str:
    told = _duration(status.elapsed_s(now_s))
    if status.phase.is_over:
        return f", {told} ago"
    return f" (paused) for {told}" if status.is_paused else f" for {told}"


def _paused(status: Status) -> Iterator[str]:
    if status.is_paused:
        yield (
            f"Paused since {_time(status.paused_s)}: nothing moves forward and no time counts;"
            " a gate that fails still takes it back"
        )


def ahead(status: Status, plan: PlanSettings, now_s: float) -> Iterator[str]:
    """What it waits for, and what would make it move."""
    if status.waits:
        yield f"it waits for an operator: {status.waits}"
    if status.phase in (Phase.SHADOW, Phase.CANARY):
        yield _step_rule(status, plan)
    if status.phase in _WAITS_FOR:
        yield _WAITS_FOR[status.phase]
    if status.phase is Phase.KEEPING:
        left_s = max(0.0, plan.keep_s - status.elapsed_s(now_s))
        yield f"{status.stable} goes in {_duration(left_s)}; an abort until then brings it back"
    if status.phase in TRIED | UNSEEN - {Phase.PENDING}:
        yield _stall_rule(status, plan, now_s)


def _step_rule(status: Status, plan: PlanSettings) -> str:
    what = "mirrored requests" if status.phase is Phase.SHADOW else "requests of each arm"
    rule = (
        f"it moves on when every gate passes over at least {plan.min_samples} {what}"
        f" and {plan.min_s:g} s"
    )
    by_hand = weight_of(status, plan) in plan.approvals and not status.approved
    return f"{rule}, and an operator approves" if by_hand else rule


def _stall_rule(status: Status, plan: PlanSettings, now_s: float) -> str:
    left_s = plan.max_s - status.elapsed_s(now_s)
    then = _ON_STALL[plan.on_stall]
    if status.phase in UNSEEN and plan.on_stall is OnStall.MANUAL:
        then = _ON_STALL[OnStall.HOLD]
    when = f"in {_duration(left_s)}" if left_s > 0 else "by now"
    return f"undecided {when} (on_stall={plan.on_stall.value}): {then}"


def _evidence(status: Status, moves: Sequence[Move], judgement: Judgement) -> Iterator[str]:
    """Of this step; of what is over, the findings that ended it."""
    findings = [asdict(found) for found in judgement.findings]
    if status.phase.is_over:
        end = ending(moves)
        yield from lines(end)[1:] if end is not None else ()
        return
    yield from map(_finding, findings)
    if status.phase in TRIED and not findings:
        yield "  nothing was measured in this step yet"


def ending(moves: Sequence[Move]) -> Move | None:
    """The last move that was decided on evidence: of what is over, what ended it."""
    return next((move for move in reversed(moves) if move.evidence), None)


def _finding(found: Mapping[str, Any]) -> str:
    group = f" [{found['group']}]" if found["group"] else ""
    verdict = found["verdict"] if found["counts"] else "told only"
    return f"  {verdict!s:<12} {found['figure']}{group}: {found['reason']}"


def _history(moves: Sequence[Move]) -> Iterator[str]:
    if moves:
        yield "How it came here:"
    yield from (f"  {line(move)}" for move in moves[-_NUM_MOVES:])


def _choices(status: Status) -> Iterator[str]:
    """What an operator's command would do; none of them is refused where it stands."""
    if status.phase.is_bad_end and status.phase is not Phase.ROLLED_BACK:
        yield "You can: action=retry"
    elif status.phase is Phase.ROLLED_BACK:
        yield "You can: start it again with rollout.force=true, or start another release"
    elif not status.phase.is_over:
        told = ", ".join(f"action={verb}" for verb in verbs(status))
        yield f"You can: {told}"


def verbs(status: Status) -> Iterator[Verb]:
    """What an operator can ask now: nothing of what is over."""
    if status.phase.is_over:
        return
    yield Verb.ABORT
    yield Verb.RESUME if status.is_paused else Verb.PAUSE
    if status.waits:
        yield Verb.APPROVE
    if status.phase not in IN_CHARGE | {Phase.PENDING, Phase.DEPLOYING}:
        yield Verb.PROMOTE


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


_WAITS_FOR = {
    Phase.PENDING: "it is deployed once the pre webhook, where there is one, answers 2xx",
    Phase.DEPLOYING: "it is warmed up once its replicas are ready",
    Phase.WARMING: "it meets traffic once it answered prompts of its own",
    Phase.CONFIRMING: "it is promoted once every confirmation prompt is decoded and passes",
    Phase.PROMOTING: "the old stable's time begins once plan and alias are in force",
}
_ON_STALL = {
    OnStall.HOLD: "it stays as it is and goes on looking",
    OnStall.ROLLBACK: "stable has all traffic again",
    OnStall.MANUAL: "an operator has to approve or abort",
}
