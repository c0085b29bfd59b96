"""What was recorded comes back, from MLflow as from memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.core import Fault, UserError
from outrider.testing import ManualClock, MemoryHistory, MemoryTracker
from outrider.tracking.history import History
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import RunStatus, Tracker


def told_to_mlflow(uri: str, folder: Path) -> History:
    clock = ManualClock(100.0)
    tracker = MlflowTracker(uri=uri, experiment="outrider", spool_dir=folder / "spool", clock=clock)
    tell(tracker, lambda: clock.advance(1.0))
    return MlflowHistory(uri=uri, experiment="outrider", page=2)  # pages that one kind overflows


def told_to_memory(uri: str, folder: Path) -> History:
    tracker = MemoryTracker()
    tell(tracker, lambda: None)
    return MemoryHistory(tracker)


def tell(tracker: Tracker, tick: Callable[[], None]) -> None:
    """A bench run with three contenders under it, then a serve run that goes on."""
    parent = tracker.start_run("trial", "bench", {"part": "tuning"}, {"decision": "adopt"})
    parent.log_text("{}", name="tables/trial.json")
    for index in range(3):
        tick()
        child = tracker.start_run(f"c{index}", "contender", {"in_flight": 8}, parent=parent)
        child.log_window({"window.tokens_per_s": 5.0}, 1, 1.0)
        child.log_window({"window.tokens_per_s": 7.0}, 2, 2.0)
        child.log_final({"speedup_ratio": 1.5 + index})
        child.close(RunStatus.FINISHED)
    parent.close(RunStatus.FAILED)
    tick()
    tracker.start_run("main", "serve", {}).flush()


@pytest.fixture(params=[told_to_mlflow, told_to_memory])
def history(request: pytest.FixtureRequest, store_uri: str, tmp_path: Path) -> History:
    made: History = request.param(store_uri, tmp_path)
    return made


def test_runs_come_newest_first_and_by_kind(history: History) -> None:
    names = [run.name for run in history.runs()]
    assert names == ["main", "c2", "c1", "c0", "trial"]
    found = history.runs(["bench", "contender"])
    assert [run.name for run in found] == ["c2", "c1", "c0", "trial"]
    assert history.runs(["sweep"]) == []


def test_a_run_comes_back_as_it_was_told(history: History) -> None:
    [trial] = history.runs(["bench"])
    assert (trial.status, trial.params["part"], trial.tags["decision"]) == (
        "FAILED",
        "tuning",
        "adopt",
    )
    child = history.run(history.runs(["contender"])[0].run_id)
    assert child.parent_id == trial.run_id
    assert child.metrics == {"window.tokens_per_s": 7.0, "speedup_ratio": 3.5}
    assert child.params == {"in_flight": "8"}
    assert child.started_s > trial.started_s
    assert history.runs(["serve"])[0].status == "RUNNING"


def test_an_artifact_is_fetched_into_a_folder(history: History, tmp_path: Path) -> None:
    [trial] = history.runs(["bench"])
    copy = history.fetch(trial.run_id, "tables/trial.json", tmp_path / "here")
    assert copy.name == "trial.json"
    assert copy.is_relative_to(tmp_path / "here")
    assert copy.read_text() == "{}"
    with pytest.raises(Fault):
        history.fetch(trial.run_id, "tables/none.json", tmp_path / "here")


def test_a_run_that_is_not_there_is_named(history: History) -> None:
    for run_id in ("0" * 32, "local-0", "local-x' OR 'a' = 'a", "../.."):
        with pytest.raises(UserError, match="there is no run") as refused:
            history.run(run_id)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("is_memory", [True, False], ids=["memory", "mlflow"])
def test_a_run_that_went_on_kept_its_params_and_tells_what_was_changed(
    store_uri: str, tmp_path: Path, is_memory: bool
) -> None:
    memory = MemoryTracker()
    mlflow = MlflowTracker(uri=store_uri, experiment="outrider", spool_dir=tmp_path / "spool")
    tracker: Tracker = memory if is_memory else mlflow
    first = tracker.start_run("search", "sweep", {"eta": 2, "rungs": 3})
    first.close(RunStatus.KILLED)
    again = tracker.resume_run(first.run_id, "search", "sweep", {"eta": 4, "rungs": 3, "new": 1})
    again.close(RunStatus.FINISHED)
    history: History = (
        MemoryHistory(memory) if is_memory else MlflowHistory(uri=store_uri, experiment="outrider")
    )
    [run] = history.runs()
    assert (run.run_id, run.status) == (first.run_id, "FINISHED")
    assert run.params == {"eta": "2", "rungs": "3", "new": "1"}
    assert run.tags["resumed.eta"] == "4"
    assert "resumed.rungs" not in run.tags
    assert tracker.resume_run("0" * 32, "other", "sweep", {}).run_id != first.run_id


def test_reading_makes_no_store(tmp_path: Path) -> None:
    history = MlflowHistory(uri=sqlite_uri(tmp_path / "runs.db"), experiment="outrider")
    with pytest.raises(UserError, match="no runs yet"):
        history.runs()
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_our_experiment_has_no_runs_yet(store_uri: str) -> None:
    with pytest.raises(UserError, match="no runs yet"):
        MlflowHistory(uri=store_uri, experiment="outrider").runs()


def test_a_store_that_is_away_is_a_fault() -> None:
    history = MlflowHistory(uri="http://127.0.0.1:9", experiment="outrider")
    with pytest.raises(Fault, match=r"http://127\.0\.0\.1:9"):
        history.runs()
