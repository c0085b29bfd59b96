"""Real jobs that start at once on a store that does not exist yet, and end in four ways."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import RunStatus

JOB = """
import sys
from pathlib import Path
from outrider.config.interruption import Terminated
from outrider.tracking.lifecycle import closing, terminate_as_exception
from outrider.tracking.mlflow_tracker import MlflowTracker

uri, spool = sys.argv[1:]
tracker = MlflowTracker(uri=uri, experiment="outrider", spool_dir=Path(spool))
try:
    with terminate_as_exception(), closing(tracker.start_run("job", "test", {})) as run:
        with closing(tracker.start_run("part", "test", {}, parent=run)) as part:
            for each in (run, part):
                each.log_window({"tokens_per_s": 1.0}, 1, 1.0)
            tracker.close()
            print(run.run_id, part.run_id, flush=True)
            sys.stdin.readline()
            raise ValueError("broken")
except (KeyboardInterrupt, Terminated, ValueError) as error:
    sys.exit(type(error).__name__)
"""
SIGNALS = {"term": signal.SIGTERM, "int": signal.SIGINT, "kill": signal.SIGKILL}
SAID = {"fail": "ValueError\n", "term": "Terminated\n", "int": "KeyboardInterrupt\n", "kill": ""}
START_S = 240.0


@dataclass(frozen=True)
class Job:
    """How one ended."""

    ending: str
    run_ids: list[str]  # its run, and the run under it
    stderr: str


@dataclass(frozen=True)
class Story:
    """What became of all of them."""

    uri: str
    spool: Path
    jobs: list[Job]  # on SQLite eight (P13), on PostgreSQL one of each ending
    num_running: int  # at the same time

    def runs(self, ending: str) -> list[Run]:
        client = MlflowClient(self.uri)
        ids = (run_id for job in self.jobs if job.ending == ending for run_id in job.run_ids)
        return [client.get_run(run_id) for run_id in ids]

    def statuses(self, ending: str) -> set[str]:
        return {str(run.info.status) for run in self.runs(ending)}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("fresh store")
    if request.param == "postgresql":  # each with a spool of its own, as on four machines
        uri = request.getfixturevalue("postgres").uri("fresh")
        endings = list(SAID)
        spools = [folder / f"spool-{ending}" for ending in endings]
    else:
        endings = list(SAID) * 2
        uri = sqlite_uri(folder / "outrider.db")
        (folder / "outrider.db.new").write_text("what a start that was shot left")
        spools = [folder / "spool"] * len(endings)
    started = [(each, start(uri, spool)) for each, spool in zip(endings, spools, strict=True)]
    run_ids = [process.stdout.readline().split() for _, process in started]  # type: ignore[union-attr]
    num_running = sum(process.poll() is None for _, process in started)
    for ending, process in started:
        if ending in SIGNALS:
            process.send_signal(SIGNALS[ending])
    jobs = [
        Job(ending, ids, process.communicate(None if ending in SIGNALS else "\n", START_S)[1])
        for (ending, process), ids in zip(started, run_ids, strict=True)
    ]
    return Story(uri, spools[0], jobs, num_running)


def start(uri: str, spool: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, uri, str(spool)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_jobs_that_start_at_once_on_a_fresh_store_all_record(story: Story) -> None:
    """P13: all record; none crashes."""
    assert story.num_running == len(story.jobs) in (4, 8)
    assert len({run_id for job in story.jobs for run_id in job.run_ids}) == 2 * len(story.jobs)
    for ending in SAID:
        for run in story.runs(ending):
            assert run.data.metrics == {"tokens_per_s": 1.0}


def test_a_job_says_nothing_of_its_store(story: Story) -> None:
    assert [job.stderr for job in story.jobs] == [SAID[job.ending] for job in story.jobs]


def test_the_end_of_a_job_is_the_status_of_its_run_and_of_those_under_it(story: Story) -> None:
    """P14: SIGTERM and Ctrl-C are KILLED, an exception is FAILED."""
    assert story.statuses("fail") == {"FAILED"}
    assert story.statuses("term") == {"KILLED"}
    assert story.statuses("int") == {"KILLED"}


def test_runs_whose_job_was_shot_are_killed_by_the_next_start(story: Story) -> None:
    """P14: SIGKILL leaves them RUNNING until then."""
    assert story.statuses("kill") == {"RUNNING"}
    tracker = MlflowTracker(uri=story.uri, experiment="outrider", spool_dir=story.spool)
    tracker.start_run("next", "test", {}).close(RunStatus.FINISHED)
    assert story.statuses("kill") == {"KILLED"}
    assert story.statuses("fail") == {"FAILED"}
