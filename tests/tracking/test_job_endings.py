"""Real jobs that start at once on a store that does not exist yet, and end in four ways."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import RunStatus

JOBS = Path(__file__).with_name("ending_jobs.py")
SIGNALS = {"term": signal.SIGTERM, "int": signal.SIGINT, "kill": signal.SIGKILL}
SAID = {"fail": "ValueError\n", "term": "Terminated\n", "int": "KeyboardInterrupt\n", "kill": ""}


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
    with started(uri, spools) as processes:
        run_ids = [process.stdout.readline().split() for process in processes]
        num_running = sum(process.is_running for process in processes)
        for ending, process in zip(endings, processes, strict=True):
            process.end(ending)
        said = [process.stderr.read() for process in processes]
    jobs = [Job(*each) for each in zip(endings, run_ids, said, strict=True)]
    return Story(uri, spools[0], jobs, num_running)


@dataclass(frozen=True)
class Started:
    """A job that runs, and our ends of its pipes."""

    pid: int
    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]

    @property
    def is_running(self) -> bool:
        with suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    def end(self, ending: str) -> None:
        if ending in SIGNALS:
            os.kill(self.pid, SIGNALS[ending])
        else:
            self.stdin.write("\n")
            self.stdin.flush()


@contextmanager
def started(uri: str, spools: Sequence[Path]) -> Iterator[list[Started]]:
    """A job for each spool, all of one process that has imported what they need.

    At the end our ends of the pipes are closed, which ends who still waits for a word.
    """
    with ExitStack() as processes, ExitStack() as files:
        theirs: list[int] = []
        ours: list[list[IO[str]]] = []
        for _ in spools:
            (stdin, give), (out, stdout), (err, stderr) = (os.pipe() for _ in range(3))
            theirs += [stdin, stdout, stderr]
            ends = [os.fdopen(give, "w"), os.fdopen(out), os.fdopen(err)]
            ours.append([files.enter_context(each) for each in ends])
        words = [sys.executable, str(JOBS), uri, ",".join(map(str, theirs)), *map(str, spools)]
        parent = processes.enter_context(
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=theirs)
        )
        for each in theirs:
            os.close(each)
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in spools]
        yield [Started(pid, *pipes) for pid, pipes in zip(pids, ours, strict=True)]


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
