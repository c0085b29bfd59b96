"""A job that records from three threads until told to stop: `python writer.py URI SPOOL NAME`.

Says its run's id when that has begun; told to stop, it ends and says what it recorded and how
long it was held up, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from outrider.tracking.lifecycle import closing
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.outbox_run import OutboxRun

NUM_THREADS = 3
PER_THREAD = 100_000  # steps
EVERY_S = 0.3
NOTE_EVERY = 5  # windows


class Writer:
    def __init__(self, run: OutboxRun) -> None:
        self.run = run
        self.stop = threading.Event()
        self.counts = [0] * NUM_THREADS
        self.longest_s = 0.0

    def write(self, index: int) -> None:
        while not self.stop.wait(EVERY_S):
            before = time.monotonic()
            self._record(index, self.counts[index])
            self.counts[index] += 1
            self.longest_s = max(self.longest_s, time.monotonic() - before)

    def _record(self, index: int, at: int) -> None:
        step = index * PER_THREAD + at
        self.run.log_window({"window.tokens_per_s": float(at)}, step, time.time())
        if at % NOTE_EVERY == 0:
            self.run.set_tags({f"thread.{index}": str(at)})
            self.run.log_text(str(at), name=f"notes/{step}.txt")


def main(uri: str, spool: str, name: str) -> None:
    began = time.monotonic()
    tracker = MlflowTracker(uri=uri, experiment="outrider", spool_dir=Path(spool))
    with closing(tracker.start_run(name, "test", {"name": name})) as run:
        start_s = time.monotonic() - began
        writer = Writer(run)
        threads = [
            threading.Thread(target=writer.write, args=(index,)) for index in range(NUM_THREADS)
        ]
        for thread in threads:
            thread.start()
        print(run.run_id, flush=True)
        sys.stdin.readline()
        writer.stop.set()
        for thread in threads:
            thread.join()
        run.log_final({"num_requests": float(sum(writer.counts))})
        ending = time.monotonic()
    told = {
        "counts": writer.counts,
        "start_s": start_s,
        "longest_s": writer.longest_s,
        "close_s": time.monotonic() - ending,
    }
    print(json.dumps(told), flush=True)


main(*sys.argv[1:])
