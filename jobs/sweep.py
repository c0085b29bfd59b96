"""Search draft lengths, drafters and rules by successive halving; end with a release to confirm.

Every combination of the axes is measured against plain decoding on a few tuning prompts, the
better ones on more. Run again, a search goes on where it stopped; another one is refused. The
folder keeps what was measured, and recommended.yaml.

Examples
  python jobs/sweep.py
  python jobs/sweep.py folder=runs/rules 'axes=["engine=default,ratio","draft.length.max=4,8"]'
  python jobs/sweep.py folder=runs/eight in_flight=8 'axes=["draft=ngram,fixed"]'
  python jobs/sweep.py first_prompts=3 keep_ratio=0.34 answer_tokens=64
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import SweepJob


def run(settings: SweepJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch and Ray: not before the settings are known to be good

    return wiring.sweep(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("sweep", SweepJob, __doc__, run)))
