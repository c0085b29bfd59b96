"""Learn a draft head for a model from what the model itself wrote.

Reads the folder of a bulk job, or JSONL of prompts and completions. Leaves a head in head_dir,
recorded in MLflow and registered as a version of the model outrider-draft. Run again, it goes on
where it stopped.

Examples
  python jobs/distill.py action=prompts out=prompts.jsonl num_prompts=12000
  python jobs/bulk.py input=prompts.jsonl job_dir=answers engine.max_rows=32
  python jobs/distill.py input=answers head_dir=head
  python jobs/distill.py input=answers head_dir=head limit=500 num_epochs=2 tracking=off
  RAY_ADDRESS=head:6379 python jobs/distill.py input=answers head_dir=head num_workers=4
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import DistillJob


def run(settings: DistillJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch: not before the settings are known to be good

    return wiring.distill(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("distill", DistillJob, __doc__, run)))
