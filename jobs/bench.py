"""Measure releases against plain decoding and say which to adopt; or the README's figures.

With releases=[...]: each in a process of its own, in turn on the same prompts. Criteria are
recorded before the first request; exit status 1 where a release is rejected. Without: the figures
that engine and serving are judged by.

Examples
  python jobs/bench.py 'releases=["draft=ngram","draft=fixed length.max=4"]'
  python jobs/bench.py 'releases=[models:/outrider@challenger]' part=confirmation
  python jobs/bench.py 'releases=["draft=ngram"]' in_flight=[1] num_passes=3 price_per_hour=0.2
  python jobs/bench.py num_repeats=4 out=runs/figures.json
  python jobs/bench.py target=http only=[goodput,killed_replicas] minutes=1
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import BenchJob


def run(settings: BenchJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch and OpenVINO: not before the settings are known to be good

    if settings.trial.releases:
        return wiring.trial(settings, words)
    return wiring.bench(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("bench", BenchJob, __doc__, run)))
