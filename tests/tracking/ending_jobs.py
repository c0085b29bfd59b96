"""Jobs that end as they are told: `python ending_jobs.py URI FD,FD,FD,... SPOOL...`.

A process for each spool, whose input, output and errors are the next three descriptors. They are
children of one process, so that MLflow is imported once. Says their process numbers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import mlflow  # noqa: F401  (each job needs it)

from outrider.config.interruption import Terminated
from outrider.tracking.lifecycle import closing, terminate_as_exception
from outrider.tracking.mlflow_tracker import MlflowTracker


def job(uri: str, spool: str) -> None:
    tracker = MlflowTracker(uri=uri, experiment="outrider", spool_dir=Path(spool))
    try:
        with (
            terminate_as_exception(),
            closing(tracker.start_run("job", "test", {})) as run,
            closing(tracker.start_run("part", "test", {}, parent=run)) as part,
        ):
            for each in (run, part):
                each.log_window({"tokens_per_s": 1.0}, 1, 1.0)
            tracker.close()
            print(run.run_id, part.run_id, flush=True)
            sys.stdin.readline()
            raise ValueError("broken")
    except (KeyboardInterrupt, Terminated, ValueError) as error:
        sys.exit(type(error).__name__)


def main(uri: str, descriptors: str, *spools: str) -> None:
    pipes = [int(each) for each in descriptors.split(",")]
    for index, spool in enumerate(spools):
        pid = os.fork()
        if not pid:
            for ours, own in enumerate(pipes[3 * index : 3 * index + 3]):
                os.dup2(own, ours)
            for each in pipes:
                os.close(each)
            job(uri, spool)
            return
        print(pid, flush=True)
    for each in pipes:
        os.close(each)
    for _ in spools:
        os.wait()


main(*sys.argv[1:])
