"""Bring a candidate release into a running service in steps, or take it back: by its evidence.

A shadow first, then a growing share of the traffic, then all of it; a candidate that is slower,
fails, drafts worse or answers differently goes back by itself. Ctrl-C leaves the rollout as it
stands; start without a release goes on with it.

Examples
  python jobs/rollout.py release=models:/outrider@challenger
  python jobs/rollout.py 'release="draft=fixed length.max=4"' plan=quick
  python jobs/rollout.py action=explain
  python jobs/rollout.py action=abort reason="the support desk called"
  python jobs/rollout.py action=retry force=true
  python jobs/rollout.py action=simulate gates.min_speed_ratio=0.9
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import RolloutJob


def run(settings: RolloutJob, words: Sequence[str]) -> int:
    from outrider import wiring  # not before the settings are known to be good

    return wiring.rollout(settings)


if __name__ == "__main__":
    sys.exit(main(Job("rollout", RolloutJob, __doc__, run)))
