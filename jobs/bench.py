"""Measure the figures that engine and serving are judged by, print them, write them to a file.

Every comparison is paired, A B A B in one run, on the shipped workload.

Examples
  python jobs/bench.py
  python jobs/bench.py num_repeats=4 out=runs/figures.json
  python jobs/bench.py target=http
  python jobs/bench.py target=http only=[goodput,killed_replicas] minutes=1
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import BenchJob


def run(settings: BenchJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch and OpenVINO: not before the settings are known to be good

    return wiring.bench(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("bench", BenchJob, __doc__, run)))
