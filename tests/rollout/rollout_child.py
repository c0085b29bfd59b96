"""A controller in a process of its own, for a test to kill. Time passes 20 times as fast."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from rollout_stand import URL, Stand


class FastClock:
    """Real, as two processes must agree on it, and 20 times as fast."""

    def __init__(self) -> None:
        self.began = 1_000_000_000.0

    def time(self) -> float:
        return self.began + 20.0 * (time.time() - self.began)

    def monotonic(self) -> float:
        return self.time()


class Told(list[str]):
    def append(self, line: str) -> None:
        print(line, flush=True)


def main(database: str) -> None:
    stand = Stand(database)
    stand.clock = FastClock()  # type: ignore[assignment]
    stand.service = type(stand.service)(stand.clock)
    stand.told = Told()
    active = stand.store.active(URL) or stand.begin()
    stand.rollout_id = active.status.rollout_id
    stand.controller().run(tick_s=0.05)
    print(json.dumps({"way": stand.way(), "plan": stand.service.plan.stable}), flush=True)


main(sys.argv[1])
