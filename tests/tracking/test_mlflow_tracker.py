"""What a job records is in MLflow, whole, under its own names, wherever the job was started."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from outrider.core import UserError
from outrider.testing import ManualClock
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.process import Process
from outrider.tracking.release_record import ReleaseRecord
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


def test_a_child_is_shown_under_its_parent(store_uri: str, tmp_path: Path) -> None:
    tracker = tracker_at(store_uri, tmp_path)
    parent = tracker.start_run("search", "sweep", {})
    child = tracker.start_run("one", "contender", {}, parent=parent)
    for run in (child, parent):
        run.close(RunStatus.FINISHED)
    tags = run_of(store_uri, child.run_id).data.tags
    assert tags["mlflow.parentRunId"] == parent.run_id


def test_a_child_of_a_run_that_the_store_did_not_have_yet_finds_it(
    store_uri: str, fresh_store: Path, tmp_path: Path
) -> None:
    database = database_path(store_uri)
    assert database is not None
    database.write_text("this is not a database")
    tracker = tracker_at(store_uri, tmp_path)
    parent = tracker.start_run("search", "sweep", {})
    child = tracker.start_run("one", "contender", {}, parent=parent)
    assert parent.run_id.startswith("local-")
    database.write_bytes(fresh_store.read_bytes())
    for run in (child, parent):
        run.close(RunStatus.FINISHED)
    tags = run_of(store_uri, child.run_id).data.tags
    assert tags["mlflow.parentRunId"] == parent.run_id


def test_a_run_goes_on_whatever_was_changed(store_uri: str, tmp_path: Path) -> None:
    """Params are immutable: what differs is told beside them."""
    first = tracker_at(store_uri, tmp_path).start_run("job", "bulk", {"k": 4, "kept": "x"})
    first.log_window({"tokens_per_s": 1.0}, 1, 101.0)
    first.close(RunStatus.KILLED)
    client = MlflowClient(store_uri)
    for name, value in {"host": "elsewhere", "started": "1"}.items():
        client.set_tag(first.run_id, f"outrider.process.{name}", value)

    tracker = tracker_at(store_uri, tmp_path, now=200.0)
    again = tracker.resume_run(
        first.run_id, "job", "bulk", {"k": 8, "kept": "x", "long": "y" * 6001}, {"a": "b"}
    )
    assert again.run_id == first.run_id
    again.flush()
    found = run_of(store_uri, again.run_id)
    assert found.info.status == "RUNNING"
    assert found.data.params.items() >= {"k": "4", "kept": "x"}.items()
    assert "long" in found.data.params
    assert found.data.tags["resumed.k"] == "8"
    assert "resumed.kept" not in found.data.tags
    owner = Process.from_tags(found.data.tags)
    assert owner == Process.current()
    again.log_window({"tokens_per_s": 2.0}, 2, 201.0)
    again.close(RunStatus.FINISHED)
    found = run_of(store_uri, again.run_id)
    assert (found.info.status, found.info.end_time) == ("FINISHED", 200_000)
    assert found.data.tags["a"] == "b"
    history = client.get_metric_history(again.run_id, "tokens_per_s")
    assert [metric.step for metric in history] == [1, 2]


@pytest.mark.parametrize("run_id", ["0" * 32, "local-" + "0" * 32, "local-x' OR 'a' = 'a", "?/"])
def test_to_go_on_in_a_run_that_is_not_there_begins_one(
    store_uri: str, tmp_path: Path, run_id: str
) -> None:
    run = tracker_at(store_uri, tmp_path).resume_run(run_id, "job", "bulk", {"k": 4})
    run.close(RunStatus.FINISHED)
    found = run_of(store_uri, run.run_id)
    assert (found.info.status, found.data.params) == ("FINISHED", {"k": "4"})


def test_to_go_on_twice_in_a_run_that_was_lost_is_one_run(store_uri: str, tmp_path: Path) -> None:
    lost = "local-" + "0" * 32
    tracker = tracker_at(store_uri, tmp_path)
    first, second = (tracker.resume_run(lost, "job", "bulk", {}).run_id for _ in range(2))
    assert first == second


BEGIN_AND_DIE = """
import os, sys
from pathlib import Path
from outrider.tracking.mlflow_tracker import MlflowTracker
tracker = MlflowTracker(uri=sys.argv[1], experiment="outrider", spool_dir=Path(sys.argv[2]))
run = tracker.start_run("job", "bulk", {"k": 4})
run.log_window({"tokens_per_s": 1.0}, 1, 101.0)
run.flush()
print(run.run_id, flush=True)
os._exit(9)
"""


def test_a_run_goes_on_that_the_store_never_got(
    store_uri: str, fresh_store: Path, tmp_path: Path
) -> None:
    database = database_path(store_uri)
    assert database is not None
    database.write_text("this is not a database")
    words = [sys.executable, "-c", BEGIN_AND_DIE, store_uri, str(tmp_path / "spool")]
    first = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    assert first.startswith("local-")
    tracker = tracker_at(store_uri, tmp_path, now=200.0)
    again = tracker.resume_run(first, "job", "bulk", {"k": 8})
    assert again.run_id == first
    again.log_window({"tokens_per_s": 2.0}, 2, 201.0)

    database.write_bytes(fresh_store.read_bytes())
    again.close(RunStatus.FINISHED)
    client = MlflowClient(store_uri)
    experiment = client.get_experiment_by_name("outrider")
    [found] = client.search_runs([experiment.experiment_id])
    assert found.info.run_id == again.run_id
    assert found.info.status == "FINISHED"
    assert found.data.params == {"k": "4"}
    assert found.data.tags["resumed.k"] == "8"
    history = client.get_metric_history(again.run_id, "tokens_per_s")
    assert [metric.step for metric in history] == [1, 2]


def test_a_run_registers_its_release_once_for_its_fingerprint(
    store_uri: str, tmp_path: Path
) -> None:
    record = ReleaseRecord(fingerprint="f" * 64, settings={"k": 4}, config={"draft": {"k": 4}})
    tracker = tracker_at(store_uri, tmp_path)
    for _ in range(2):
        run = tracker.start_run("job", "bulk", {})
        run.register(record)
        run.close(RunStatus.FINISHED)
        tags = run_of(store_uri, run.run_id).data.tags
        assert (tags["release.version"], tags["release.fingerprint"]) == ("1", "f" * 64)


def test_a_record_of_another_version_holds_up_nothing(store_uri: str, tmp_path: Path) -> None:
    class Later(ReleaseRecord):
        def to_json(self) -> str:
            return '{"fingerprint": "f", "unheard_of": 1}'

    run = tracker_at(store_uri, tmp_path).start_run("job", "bulk", {})
    run.register(Later(fingerprint="f", settings={}, config={}))
    run.close(RunStatus.FINISHED)
    found = run_of(store_uri, run.run_id)
    assert found.info.status == "FINISHED"
    assert "release.version" not in found.data.tags


def test_mlflows_own_pages_show_the_speed_up_first(store_uri: str, tmp_path: Path) -> None:
    """Also where the experiment was there before; what somebody chose stays."""
    client = MlflowClient(store_uri)
    made = client.create_experiment("outrider")
    chosen = "mlflow.experiment.primaryMetric.greaterIsBetter"
    client.set_experiment_tag(made, chosen, "False")
    tracker_at(store_uri, tmp_path).start_run("job", "bulk", {}).close(RunStatus.FINISHED)
    tags = client.get_experiment(made).tags
    assert tags["mlflow.experiment.primaryMetric.name"] == "speedup_ratio"
    assert tags[chosen] == "False"
