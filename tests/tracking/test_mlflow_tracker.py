"""What a job records is in MLflow, whole, under its own names, wherever the job was started."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from outrider.core import UserError
from outrider.testing import ManualClock
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.process import Process
from outrider.tracking.store_uri import database_path
from outrider.tracking.tracker import RunStatus


def tracker_at(uri: str, tmp_path: Path, now: float = 100.0) -> MlflowTracker:
    return MlflowTracker(
        uri=uri, experiment="outrider", spool_dir=tmp_path / "spool", clock=ManualClock(now)
    )


def run_of(uri: str, run_id: str) -> Run:
    return MlflowClient(uri).get_run(run_id)


def test_a_run_is_recorded_whole(store_uri: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("{}")
    tracker = tracker_at(store_uri, tmp_path)
    run = tracker.start_run(
        "job",
        "bulk",
        {"model": {"dtype": "float32", "threads": 2}, "stop": ["a"]},
        {"fingerprint": "f" * 64},
    )
    run.log_window({"tokens_per_s": 10.0, "acceptance_ratio": math.nan}, 1, 101.0)
    run.log_window({"tokens_per_s": 12.0, "speedup_ratio/chat": 1.1}, 2, 106.0)
    run.log_final({"num_rows_done": 96.0})
    run.log_artifact(report, folder="job")
    run.log_text("seed: 0\n", name="config.yaml")
    run.close(RunStatus.FINISHED)

    found = run_of(store_uri, run.run_id)
    assert found.info.status == "FINISHED"
    assert (found.info.start_time, found.info.end_time) == (100_000, 100_000)
    assert found.info.run_name == "job"
    assert found.data.params == {
        "model.dtype": "float32",
        "model.threads": "2",
        "stop": '["a"]',
    }
    assert found.data.tags["fingerprint"] == "f" * 64
    assert found.data.tags["outrider.kind"] == "bulk"
    assert found.data.metrics == {
        "tokens_per_s": 12.0,
        "speedup_ratio/chat": 1.1,
        "num_rows_done": 96.0,
    }
    client = MlflowClient(store_uri)
    history = client.get_metric_history(run.run_id, "tokens_per_s")
    assert [(m.step, m.timestamp, m.value) for m in history] == [
        (1, 101_000, 10.0),
        (2, 106_000, 12.0),
    ]
    beside = tmp_path / "store" / "artifacts" / run.run_id / "artifacts"
    assert (beside / "job" / "report.json").read_text() == "{}"
    assert (beside / "config.yaml").read_text() == "seed: 0\n"


def test_values_beyond_mlflows_limits_are_kept_whole(store_uri: str, tmp_path: Path) -> None:
    overrides, diff = "o" * 6001, "d" * 8001
    tracker = tracker_at(store_uri, tmp_path)
    many = {f"p{index}": "x" for index in range(250)}
    run = tracker.start_run("job", "bulk", {"overrides": overrides, **many}, {"diff": diff})
    run.log_window({f"m{index}": 1.0 for index in range(250)}, 1, 1.0)
    run.close(RunStatus.FINISHED)

    found = run_of(store_uri, run.run_id)
    assert len(found.data.params) == 251
    assert len(found.data.metrics) == 250
    kept = {  # where the whole value is, by the note in its place
        note.split()[3].rstrip(","): value
        for note, value in (
            (found.data.params["overrides"], overrides),
            (found.data.tags["diff"], diff),
        )
    }
    artifacts = tmp_path / "store" / "artifacts" / run.run_id / "artifacts"
    assert {name: (artifacts / name).read_text() for name in kept} == kept
    assert len(kept) == 2


def test_the_first_status_stays(store_uri: str, tmp_path: Path) -> None:
    run = tracker_at(store_uri, tmp_path).start_run("job", "bulk", {})
    run.close(RunStatus.KILLED)
    run.close(RunStatus.FINISHED)
    assert run_of(store_uri, run.run_id).info.status == "KILLED"


def test_runs_do_not_depend_on_the_working_directory(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run = tracker_at(store_uri, tmp_path).start_run(name, "bulk", {})
        run.log_text("x", name="note.txt")
        run.close(RunStatus.FINISHED)
        ids.append(run_of(store_uri, run.run_id).info.experiment_id)
        assert list((tmp_path / name).iterdir()) == []
    assert ids[0] == ids[1]


def test_a_relative_store_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"tracking\.uri"):
        tracker_at("sqlite:///outrider.db", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_away_stops_nothing_and_gets_the_run_later(
    store_uri: str, fresh_store: Path, tmp_path: Path
) -> None:
    database = database_path(store_uri)
    assert database is not None
    database.write_text("this is not a database")
    tracker = tracker_at(store_uri, tmp_path, now=100.0)
    run = tracker.start_run("job", "bulk", {"a": "b"}, {"c": "d"})
    local_id = run.run_id
    run.log_window({"tokens_per_s": 10.0}, 1, 101.0)
    run.log_text("kept", name="note.txt")
    run.close(RunStatus.FINISHED)
    assert local_id.startswith("local-")
    assert [path.suffix for path in (tmp_path / "spool").glob("*.jsonl")] == [".jsonl"]

    database.write_bytes(fresh_store.read_bytes())
    tracker.close()
    assert list((tmp_path / "spool").iterdir()) == []
    found = run_of(store_uri, run.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.tags["outrider.key"] == local_id.removeprefix("local-")
    assert found.data.tags["c"] == "d"
    assert found.data.params == {"a": "b"}
    assert found.data.metrics == {"tokens_per_s": 10.0}
    assert (tmp_path / "store" / "artifacts" / run.run_id / "artifacts" / "note.txt").is_file()


def test_an_artifact_that_vanished_holds_up_nothing(store_uri: str, tmp_path: Path) -> None:
    run = tracker_at(store_uri, tmp_path).start_run("job", "bulk", {})
    run.log_artifact(tmp_path / "never.json")
    run.close(RunStatus.FINISHED)
    assert run_of(store_uri, run.run_id).info.status == "FINISHED"


def test_a_server_that_is_not_there_costs_a_job_nothing_but_its_record(tmp_path: Path) -> None:
    run = tracker_at("http://127.0.0.1:9", tmp_path).start_run("job", "bulk", {})
    run.close(RunStatus.FAILED)
    assert run.run_id.startswith("local-")
    assert len(list((tmp_path / "spool").glob("*.jsonl"))) == 1


def test_only_runs_whose_process_is_gone_are_swept(store_uri: str, tmp_path: Path) -> None:
    tracker = tracker_at(store_uri, tmp_path)
    alive = tracker.start_run("alive", "bulk", {})
    client = MlflowClient(store_uri)
    experiment = client.get_experiment_by_name("outrider")
    here = Process.current().to_tags()
    others = {
        "gone": here | {"outrider.process.started": "1"},
        "elsewhere": here | {"outrider.process.host": "other", "outrider.process.started": "1"},
        "foreign": {},
    }
    ids = {
        name: client.create_run(experiment.experiment_id, tags=tags).info.run_id
        for name, tags in others.items()
    }
    tracker_at(store_uri, tmp_path).start_run("next", "bulk", {}).close(RunStatus.FINISHED)
    statuses = {name: run_of(store_uri, run_id).info.status for name, run_id in ids.items()}
    assert statuses == {"gone": "KILLED", "elsewhere": "RUNNING", "foreign": "RUNNING"}
    assert run_of(store_uri, alive.run_id).info.status == "RUNNING"


def test_nothing_is_printed(
    store_uri: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tracker_at(store_uri, tmp_path).start_run("job", "bulk", {}).close(RunStatus.FINISHED)
    assert capfd.readouterr() == ("", "")
