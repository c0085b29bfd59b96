"""Lines of the two tables: of an answer, of a request without one, of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

from outrider.core import Counters
from outrider.trial.case import Case
from outrider.trial.closed_loop import Seen
from outrider.trial.failure import Failure
from outrider.trial.observation import Measured, Observation, Turn
from outrider.trial.plan import Batch
from outrider.trial.usage import Used

NOTHING = Used(cpu_s=0.0, peak_memory_bytes=0)


class Labels(TypedDict):
    """What an observation is told by."""

    contender: str
    in_flight: int
    batch: int
    case: str
    kind: str
    language: str
    temperature: float


def labels(contender: str, batch: Batch, case: Case) -> Labels:
    return Labels(
        contender=contender,
        in_flight=batch.in_flight,
        batch=batch.number,
        case=case.name,
        kind=case.kind,
        language=case.language,
        temperature=case.params.temperature,
    )


def answered(told_by: Labels, seen: Seen, *, num_prompt_tokens: int, began_s: float) -> Observation:
    """What the engine took, whether its answer is full or not. `began_s`: of the turn."""
    watch, completion = seen.watch, seen.completion
    counters = Counters() if completion is None else completion.counters
    return Observation(
        **told_by,
        num_prompt_tokens=num_prompt_tokens,
        submitted_s=watch.submitted_s - began_s,
        first_token_s=watch.first_token_s,
        inter_token_s=watch.inter_token_s,
        total_s=seen.total_s,
        active_s=counters.active_s,
        emitted=counters.emitted,
        drafted=counters.drafted,
        evaluated=counters.evaluated,
        accepted=counters.accepted,
        num_rounds=counters.num_rounds,
        num_draft_rounds=counters.num_draft_rounds,
        position_attempts=tuple(counters.position_attempts),
        position_accepts=tuple(counters.position_accepts),
        token_ids=() if completion is None else completion.token_ids,
        finish_reason="" if completion is None else completion.finish_reason.value,
        error="" if seen.failure is None else seen.failure.value,
    )


def unanswered(told_by: Labels, failure: Failure) -> Observation:
    """What no engine took."""
    return Observation(**told_by, num_prompt_tokens=0, submitted_s=0.0, error=failure.value)


def turn_of(
    contender: str,
    batch: Batch,
    observations: Sequence[Observation],
    seconds: float,
    used: Used = NOTHING,
) -> Turn:
    full = [seen for seen in observations if not seen.error]
    return Turn(
        contender=contender,
        in_flight=batch.in_flight,
        batch=batch.number,
        seconds=seconds,
        emitted=sum(seen.emitted for seen in full),
        num_requests=len(observations),
        num_failed=len(observations) - len(full),
        cpu_s=used.cpu_s,
        peak_memory_bytes=used.peak_memory_bytes,
        gpu_ratio=used.gpu_ratio,
        energy_j=used.energy_j,
    )


def lost(contender: str, batch: Batch, seconds: float) -> Measured:
    """A turn whose process died: nothing of it can be used, its seconds are gone."""
    seen = tuple(unanswered(labels(contender, batch, case), Failure.LOST) for case in batch.cases)
    return Measured(observations=seen, turns=(turn_of(contender, batch, seen, seconds),))


def since(measured: Measured, began_s: float) -> Measured:
    """`submitted_s` counted from the trial's beginning, `began_s` seconds before the turn's."""
    moved = (
        replace(seen, submitted_s=seen.submitted_s + began_s) for seen in measured.observations
    )
    return replace(measured, observations=tuple(moved))
