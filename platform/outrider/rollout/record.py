"""A rollout as MLflow shows it: one run, with a child for each step.

Written from the store's moves alone, so that whoever goes on after a crash writes the same. A
tracker that is away never stops a rollout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.layout import TRIED
from outrider.rollout.notice import notice
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move, Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.verdict_table import markdown, metrics
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.tracker import Run, RunStatus, Tracker

KIND, STEP_KIND = "rollout", "rollout_step"
WINDOW_S = 5.0  # between two points of a figure
ENDED = "ended"
ENDS = {  # a rollout that took a bad release back did what it was asked
    Phase.PROMOTED: RunStatus.FINISHED,
    Phase.ROLLED_BACK: RunStatus.FINISHED,
    Phase.FAILED: RunStatus.FAILED,
    Phase.ABORTED: RunStatus.KILLED,
    Phase.SUPERSEDED: RunStatus.KILLED,
}


def criteria_of(plan: PlanSettings, gates: GateSettings) -> str:
    """The digest that is written down before the first request."""
    return fingerprint({"plan": plan, "gates": gates})


def open_run(tracker: Tracker, status: Status, plan: PlanSettings, gates: GateSettings) -> Run:
    """Begin its run, or go on in `status.run_id`: criteria first, before any request."""
    params = _params(status, plan, gates)
    if status.run_id:
        return tracker.resume_run(status.run_id, _name(status), KIND, params)
    return tracker.start_run(_name(status), KIND, params)


class Record:
    """The runs of one rollout, while one process controls it."""

    def __init__(self, tracker: Tracker, store: Store, run: Run | None = None) -> None:
        self._tracker = tracker
        self._store = store
        self._run = run  # None: not opened by this process yet
        self._child: tuple[str, Run] | None = None  # of the step that it is in
        self._next_s = 0.0  # when the next point is due

    def follow(self, rollout: Rollout, moves: Sequence[Move]) -> None:
        """Write all that `moves`, the whole way so far, tells. Again: the same."""
        status = rollout.status
        if self._run is None:
            self._run = open_run(self._tracker, status, rollout.plan, rollout.gates)
        self._run.log_text(_lines(status, moves), "moves.jsonl")
        self._run.log_text(_verdicts(moves), "verdicts.json")
        self._run.log_text(markdown(moves), "verdicts.md")
        self._run.set_tags(_tags(status, moves))
        for key, end in _steps(moves):
            if end is not None:
                self._end_step(status, key, end)
            elif not status.phase.is_over:
                self._step(status, key)
        if status.phase.is_over:
            self._run.close(ENDS[status.phase])

    def look(self, rollout: Rollout, now_s: float) -> None:
        """A point of each figure of this step, at most one in WINDOW_S."""
        if self._child is None or now_s < self._next_s:
            return
        self._next_s = now_s + WINDOW_S
        findings = [asdict(found) for found in rollout.judgement.findings]
        told = rollout.sums.figures() | metrics(findings)
        elapsed_s = int(rollout.status.elapsed_s(now_s))
        self._child[1].log_window(told, step=elapsed_s, at_s=now_s)

    def leave(self, status: RunStatus) -> None:
        """This process ends before the rollout: the next one goes on in the same runs."""
        if self._child is not None:
            self._child[1].close(status)
        if self._run is not None:
            self._run.close(status)

    def _end_step(self, status: Status, key: str, end: Move) -> None:
        if self._store.note(status.rollout_id, f"{ENDED}:{key}"):
            return
        run = self._step(status, key)
        run.log_final(metrics(end.evidence))
        run.set_tags({"rollout.left_for": end.phase.value, "rollout.reason": end.reason})
        run.close(ENDS.get(end.phase, RunStatus.FINISHED))
        self._child = None
        self._store.keep(status.rollout_id, f"{ENDED}:{key}", run.run_id or ENDED)

    def _step(self, status: Status, key: str) -> Run:
        """The child of a step: the one at hand, the one a crash left, or a new one."""
        if self._child is not None and self._child[0] == key:
            return self._child[1]
        name, params = f"{_name(status)} {key}", {"rollout_id": status.rollout_id, "step": key}
        known = self._store.note(status.rollout_id, f"run:{key}")
        if known:
            run = self._tracker.resume_run(known, name, STEP_KIND, params)
        else:
            run = self._tracker.start_run(name, STEP_KIND, params, parent=self._run)
        self._store.keep(status.rollout_id, f"run:{key}", run.run_id)
        self._child = (key, run)
        return run


def _steps(moves: Sequence[Move]) -> Iterator[tuple[str, Move | None]]:
    """Each step with the move that ended it; None: it goes on."""
    begun = [move for at, move in enumerate(moves) if at == 0 or _key(moves[at - 1]) != _key(move)]
    for at, move in enumerate(begun):
        if move.phase in TRIED:
            yield _key(move), begun[at + 1] if at + 1 < len(begun) else None


def _key(move: Move) -> str:
    if move.phase is Phase.CANARY:
        return f"canary-{move.step + 1}"
    return move.phase.value


def _name(status: Status) -> str:
    return f"rollout {status.candidate.name}"


def _params(status: Status, plan: PlanSettings, gates: GateSettings) -> Mapping[str, object]:
    told = {name: value for name, value in notice(status).items() if name != "run_id"}
    return told | {"uri": status.candidate.uri, "plan": plan, "gates": gates}


def _lines(status: Status, moves: Sequence[Move]) -> str:
    lines = [
        json.dumps({"number": number, **notice(status, move)}, ensure_ascii=False)
        for number, move in enumerate(moves, start=1)
    ]
    return "\n".join([*lines, ""])


def _verdicts(moves: Sequence[Move]) -> str:
    """What each move was decided on."""
    told: list[dict[str, Any]] = [
        {"number": number, "phase": move.phase, "step": move.step, "findings": move.evidence}
        for number, move in enumerate(moves, start=1)
        if move.evidence
    ]
    return json.dumps(told, indent=2, ensure_ascii=False)


def _tags(status: Status, moves: Sequence[Move]) -> dict[str, str]:
    told = {
        f"rollout.move.{number:03d}": f"{_key(move)}: {move.reason}"
        for number, move in enumerate(moves, start=1)
    }
    return told | {"rollout.phase": status.phase.value, "rollout.reason": status.reason}
