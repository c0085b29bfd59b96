"""Generate text for every row of a file, speculatively, and say what speculation gained.

Reads OpenAI batch JSONL, or JSONL/Parquet with a prompt or messages column. Leaves a folder with
output.jsonl, output.parquet, errors.jsonl and report.json; run again, it goes on where it stopped.

Examples
  python jobs/bulk.py preset=demo
  python jobs/bulk.py input=my.jsonl job_dir=out/
  python jobs/bulk.py input=my.jsonl job_dir=out/ baseline=all limit=100
  python jobs/bulk.py input=my.jsonl job_dir=out/ model=hub model.source=hub:Qwen/Qwen3-0.6B@main
  python jobs/bulk.py input=my.jsonl job_dir=out/ release=models:/outrider@champion
  python jobs/bulk.py input=my.jsonl job_dir=out/ sampling=nucleus max_tokens=256 draft=none
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import BulkJob


def run(settings: BulkJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch and Ray: not before the settings are known to be good

    return wiring.bulk(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("bulk", BulkJob, __doc__, run)))
