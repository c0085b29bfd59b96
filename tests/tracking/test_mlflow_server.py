"""A real store that is shot under load and comes back: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from servers import MlflowServer, Postgres

from outrider.tracking.mlflow_tracker import START_WAIT_S, MlflowTracker
from outrider.tracking.outbox_run import CLOSE_WAIT_S
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import RunStatus

WRITER = Path(__file__).with_name("writer.py")
PER_THREAD, NOTE_EVERY = 100_000, 5  # as in writer.py
PATIENCE = 6  # times that the next job waits for the store to take what was left
SLACK_S = 5.0  # two cores, and more to do than this


class Place(Protocol):
    """A store and its address."""

    uri: str

    def start(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class Database:
    """The tracker talks to PostgreSQL itself."""

    server: Postgres
    uri: str

    def start(self) -> None:
        self.server.start()

    def kill(self) -> None:
        self.server.kill()


@pytest.fixture(params=["server", "postgresql"])
def place(
    request: pytest.FixtureRequest, fresh_store: Path, tmp_path: Path
) -> Iterator[MlflowServer | Database]:
    """A server stores in PostgreSQL, which refuses more than SQLite, where that is installed."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        yield Database(server, server.uri("straight"))
        if not server.is_running:
            server.start()
        return
    if Postgres.programs() is None:
        shutil.copy(fresh_store, tmp_path / "mlflow.db")
        backend = sqlite_uri(tmp_path / "mlflow.db")
    else:
        backend = request.getfixturevalue("postgres").uri("served")
    served = MlflowServer(tmp_path, backend)
    served.start()
    yield served
    served.kill()


@dataclass
class Writer:
    """A process that records from several threads."""

    place: Place
    spool: Path
    name: str
    told: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), self.place.uri, str(self.spool), self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_run(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def stop(self) -> None:
        out, err = self.process.communicate("stop\n", timeout=120)
        assert self.process.returncode == 0, err
        assert "Traceback" not in err
        self.told = json.loads(out)

    @property
    def steps(self) -> list[int]:
        return [
            index * PER_THREAD + at
            for index, count in enumerate(self.told["counts"])
            for at in range(count)
        ]


@pytest.mark.timeout(600)
def test_a_store_shot_under_load_has_everything_once(place: Place, tmp_path: Path) -> None:
    """One job ends while the store is away, another begins then, one sees it come back."""
    spool = tmp_path / "spool"
    ends_away, stays = (Writer(place, spool, name) for name in ("ends away", "stays"))
    for writer in (ends_away, stays):
        assert not writer.wait_for_run().startswith("local-")
    time.sleep(1.5)
    place.kill()
    begins_away = Writer(place, spool, "begins away")
    assert begins_away.wait_for_run().startswith("local-")
    ends_away.stop()
    time.sleep(1.0)
    place.start()
    time.sleep(2.0)
    for writer in (stays, begins_away):
        writer.stop()
    tracker = MlflowTracker(uri=place.uri, experiment="outrider", spool_dir=spool)
    tracker.start_run("next", "test", {}).close(RunStatus.FINISHED)
    for _ in range(PATIENCE):
        if not list(spool.glob("*.jsonl")):
            break
        tracker.close()

    assert list(spool.glob("*.jsonl")) == []
    client = MlflowClient(place.uri)
    experiment = client.get_experiment_by_name("outrider")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["begins away", "ends away", "next", "stays"]
    assert len(client.search_runs([experiment.experiment_id])) == len(runs)
    for writer in (ends_away, stays, begins_away):
        check_whole(client, runs[writer.name], writer)
        check_waits(writer)


def check_whole(client: MlflowClient, run: Run, writer: Writer) -> None:
    """Every window, tag and artifact, each once, and the end."""
    history = client.get_metric_history(run.info.run_id, "window.tokens_per_s")
    assert sorted(metric.step for metric in history) == writer.steps
    assert all(metric.value == metric.step % PER_THREAD for metric in history)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"name": writer.name}
    assert run.data.metrics["num_requests"] == len(writer.steps)
    for index, count in enumerate(writer.told["counts"]):
        last = (count - 1) // NOTE_EVERY * NOTE_EVERY
        assert run.data.tags[f"thread.{index}"] == str(last)  # in order
    notes = {f"notes/{step}.txt" for step in writer.steps if step % PER_THREAD % NOTE_EVERY == 0}
    kept = client.list_artifacts(run.info.run_id, "notes")
    assert {artifact.path for artifact in kept} == notes


def check_waits(writer: Writer) -> None:
    """Recording never waits for the store; beginning and ending do so within their bounds."""
    assert writer.told["longest_s"] < SLACK_S
    assert writer.told["start_s"] < START_WAIT_S + SLACK_S
    assert writer.told["close_s"] < CLOSE_WAIT_S + SLACK_S
