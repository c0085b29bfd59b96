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
import sys, time
from pathlib import Path
from outrider.tracking.lifecycle import Terminated, closing, terminate_as_exception
from outrider.tracking.mlflow_tracker import MlflowTracker

folder = Path(sys.argv[1])
tracker = MlflowTracker(
    uri=f"sqlite:///{folder}/outrider.db", experiment="outrider", spool_dir=folder / "spool"
)
try:
    with terminate_as_exception(), closing(tracker.start_run("job", "test", {})) as run:
        run.log_window({"tokens_per_s": 1.0}, 1, 1.0)
        tracker.close()
        print(run.run_id, flush=True)
        sys.stdin.readline()
        raise ValueError("broken")
except (KeyboardInterrupt, Terminated, ValueError) as error:
    sys.exit(type(error).__name__)
"""
ENDINGS = ("fail", "term", "int", "kill")
SIGNALS = {"term": signal.SIGTERM, "int": signal.SIGINT, "kill": signal.SIGKILL}
START_S = 120.0


@dataclass(frozen=True)
class Story:
    """How the jobs ended, by ending."""

    folder: Path
    run_ids: dict[str, str]
    num_running: int  # jobs that ran at the same time
    stderr: dict[str, str]

    def run(self, ending: str) -> Run:
        return MlflowClient(sqlite_uri(self.folder / "outrider.db")).get_run(self.run_ids[ending])

    def status(self, ending: str) -> str:
        return str(self.run(ending).info.status)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("fresh store")
    (folder / "outrider.db.new").write_text("what a start that was shot left")
    jobs = {ending: start(folder) for ending in ENDINGS}
    run_ids = {ending: job.stdout.readline().strip() for ending, job in jobs.items()}  # type: ignore[union-attr]
    num_running = sum(job.poll() is None for job in jobs.values())
    for ending, job in jobs.items():
        if ending in SIGNALS:
            job.send_signal(SIGNALS[ending])
    ends = {
        ending: job.communicate(None if ending in SIGNALS else "\n", timeout=START_S)
        for ending, job in jobs.items()
    }
    return Story(folder, run_ids, num_running, {ending: end[1] for ending, end in ends.items()})


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_jobs_that_start_at_once_on_a_fresh_store_all_record(story: Story) -> None:
    """P13: all record; none crashes."""
    assert story.num_running == len(ENDINGS)
    assert len(set(story.run_ids.values())) == len(ENDINGS)
    for ending in ENDINGS:
        assert story.run(ending).data.metrics == {"tokens_per_s": 1.0}


def test_a_job_says_nothing_of_its_store(story: Story) -> None:
    assert story.stderr == {
        "fail": "ValueError\n",
        "term": "Terminated\n",
        "int": "KeyboardInterrupt\n",
        "kill": "",
    }


def test_the_end_of_a_job_is_its_runs_status(story: Story) -> None:
    """P14: SIGTERM and Ctrl-C are KILLED, an exception is FAILED."""
    assert story.status("fail") == "FAILED"
    assert story.status("term") == "KILLED"
    assert story.status("int") == "KILLED"


def test_a_run_whose_job_was_shot_is_killed_by_the_next_start(story: Story) -> None:
    """P14: SIGKILL leaves it RUNNING until then."""
    assert story.status("kill") == "RUNNING"
    tracker = MlflowTracker(
        uri=sqlite_uri(story.folder / "outrider.db"),
        experiment="outrider",
        spool_dir=story.folder / "spool",
    )
    tracker.start_run("next", "test", {}).close(RunStatus.FINISHED)
    assert story.status("kill") == "KILLED"
