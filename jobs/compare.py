"""Show what was measured of releases: a leaderboard, the diff of two, a report with plots.

Reads MLflow only: what `python jobs/bench.py 'releases=[...]'` and the other jobs recorded.

Examples
  python jobs/compare.py
  python jobs/compare.py sort=first_token_s_p95 'where=["in_flight=8","speedup_ratio>1"]'
  python jobs/compare.py kinds=[bulk,serve] sort=tokens_per_s
  python jobs/compare.py action=diff releases=[models:/outrider/1,models:/outrider@champion]
  python jobs/compare.py action=report 'where=["part=confirmation"]' out=runs/report.html
  python jobs/compare.py champion=3 challenger=models:/outrider/4
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import CompareJob


def run(settings: CompareJob, words: Sequence[str]) -> int:
    from outrider import wiring  # not before the settings are known to be good

    return wiring.compare(settings)


if __name__ == "__main__":
    sys.exit(main(Job("compare", CompareJob, __doc__, run)))
