"""Serve a model live: OpenAI's API over replicas of the engine, which drafts and verifies.

Listens on loopback until Ctrl-C, which lets the requests in flight end; a second one stops at
once. RAY_ADDRESS in the environment runs it on a cluster that is there.

Examples
  python jobs/serve.py
  python jobs/serve.py port=8001 num_replicas=2
  python jobs/serve.py model=hub model.source=hub:Qwen/Qwen3-0.6B@main draft=none
  python jobs/serve.py host=0.0.0.0 keys_file=keys.txt admin_keys_file=admin.txt
  python jobs/serve.py release=models:/outrider@champion
  python jobs/serve.py action=export export_dir=out/
"""

import sys
from collections.abc import Sequence

from outrider.config.console import Job, main
from outrider.config.schema import ServeJob


def run(settings: ServeJob, words: Sequence[str]) -> int:
    from outrider import wiring  # torch and Ray: not before the settings are known to be good

    return wiring.serve(settings, words)


if __name__ == "__main__":
    sys.exit(main(Job("serve", ServeJob, __doc__, run)))
