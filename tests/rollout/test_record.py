"""What is recorded of a rollout: in memory, and in a real MLflow store."""

from __future__ import annotations

import json
from pathlib import Path

from rollout_stand import ALL, GOOD_WAY, Stand, sqlite_stand

from outrider.rollout.command import Verb
from outrider.rollout.phase import Phase
from outrider.testing import Effect
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import NoTracker, RunStatus


def lines_of(text: bytes) -> list[tuple[str, int, float]]:
    moves = [json.loads(line) for line in text.decode().splitlines()]
    return [(move["phase"], move["step"], move["weight"]) for move in moves]


def test_criteria_are_recorded_before_anything_is_deployed(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    rollout = stand.begin()
    (run,) = stand.tracker.runs
    assert stand.service.calls == []
    assert run.params["gates.alpha"] == "0.05"
    assert run.params["plan.weights"] == "[0.25,0.5]"
    assert run.params["criteria"] == rollout.status.criteria != ""
    assert run.params["fingerprint"] == "fingerprint-of-candidate"
    assert run.params["stable_fingerprint"] == "fingerprint-of-stable"
    assert rollout.status.run_id == run.run_id


def test_a_rollout_is_a_run_with_a_child_for_each_step(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, gates=ALL)
    stand.begin()
    stand.run()
    parent, *children = stand.tracker.runs
    names = [child.params["step"] for child in children]
    assert names == ["shadow", "canary-1", "canary-2", "confirming"]
    assert {child.parent_id for child in children} == {parent.run_id}
    assert {run.status for run in stand.tracker.runs} == {RunStatus.FINISHED}
    assert lines_of(parent.artifacts["moves.jsonl"]) == GOOD_WAY
    assert parent.tags["rollout.phase"] == "promoted"
    assert "canary-1" in parent.tags["rollout.move.004"]
    assert children[1].final["rollout.tokens_per_s.num_candidate"] > 0
    assert children[1].windows
    verdicts = json.loads(parent.artifacts["verdicts.json"])
    assert {found["verdict"] for move in verdicts for found in move["findings"]} >= {"pass"}
    assert "| tokens_per_s | pass |" in parent.artifacts["verdicts.md"].decode()


def test_a_rollback_is_recorded_with_what_decided_it(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, {"candidate": Effect(mismatch_share=0.5)})
    stand.begin()
    stand.run()
    parent, child = stand.tracker.runs
    assert parent.tags["rollout.phase"] == "rolled_back"
    assert parent.status is RunStatus.FINISHED
    assert child.tags["rollout.left_for"] == "rolled_back"
    verdicts = json.loads(parent.artifacts["verdicts.json"])
    assert "fail" in {found["verdict"] for found in verdicts[-1]["findings"]}


def test_an_aborted_rollout_s_runs_are_killed(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.until(stand.controller(), "canary")
    stand.order(Verb.ABORT)
    stand.run()
    assert stand.tracker.runs[0].status is RunStatus.KILLED
    assert stand.tracker.runs[-1].status is RunStatus.KILLED


def test_without_a_tracker_a_rollout_goes_its_way(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.tracker = NoTracker()  # type: ignore[assignment]
    stand.begin()
    assert stand.run().phase is Phase.PROMOTED


def test_mlflow_shows_it_also_where_another_process_went_on(tmp_path: Path) -> None:
    uri = sqlite_uri(tmp_path / "mlflow.db")
    stand = sqlite_stand(tmp_path)
    tracker = mlflow(stand, uri, tmp_path)
    stand.begin()
    stand.until(stand.controller(), "canary")
    tracker.close()
    tracker = mlflow(stand, uri, tmp_path)
    assert stand.run().phase is Phase.PROMOTED
    tracker.close()
    history = MlflowHistory(uri=uri, experiment="rollouts")
    (parent,) = history.runs(["rollout"])
    steps = {run.params["step"]: run for run in history.runs(["rollout_step"])}
    assert set(steps) == {"shadow", "canary-1", "canary-2", "confirming"}
    assert {run.status for run in (parent, *steps.values())} == {"FINISHED"}
    assert {run.parent_id for run in steps.values()} == {parent.run_id}
    moves = history.fetch(parent.run_id, "moves.jsonl", tmp_path / "fetched").read_bytes()
    assert lines_of(moves) == GOOD_WAY


def mlflow(stand: Stand, uri: str, folder: Path) -> MlflowTracker:
    tracker = MlflowTracker(uri=uri, experiment="rollouts", spool_dir=folder / "spool")
    stand.tracker = tracker  # type: ignore[assignment]
    return tracker


def test_a_tracking_store_that_is_away_stops_no_rollout(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    tracker = MlflowTracker(
        uri="http://127.0.0.1:1", experiment="rollouts", spool_dir=tmp_path / "spool"
    )
    stand.tracker = tracker  # type: ignore[assignment]
    stand.begin()
    assert stand.run().phase is Phase.PROMOTED
    assert any((tmp_path / "spool").iterdir())
