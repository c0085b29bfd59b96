"""What a guard did, in the server's run: a point of a series, a line of text, a tag."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from outrider.serving.guard import Transition
from outrider.serving.guard_state import Phase
from outrider.telemetry import meters
from outrider.tracking.tracker import Run

FILE = "guard.jsonl"
LEVEL = {Phase.CLOSED: 0.0, Phase.PROBING: 1.0, Phase.OPEN: 2.0}


class GuardRecord:
    """Of one run that began at `began_s` (seconds since 1970)."""

    def __init__(self, run: Run, began_s: float) -> None:
        self._run = run
        self._began_s = began_s
        self._lines = ""
        self._num_falls = 0
        self.last_s = began_s  # time of the last transition that was seen

    def see(self, transitions: Sequence[Transition]) -> None:
        """Those since `last_s`, oldest first."""
        for each in transitions:
            self._lines += json.dumps(asdict(each)) + "\n"
            self._num_falls += each.phase is Phase.OPEN
            self._run.log_window(
                meters.in_window({meters.GUARD_PHASE.of(each.release): LEVEL[each.phase]}),
                step=max(0, round(each.at_s - self._began_s)),
                at_s=each.at_s,
            )
            self._run.set_tags({f"guard.{each.release}": f"{each.phase}: {each.reason}"})
            self.last_s = each.at_s
        if transitions:
            self._run.log_text(self._lines, FILE)
            self._run.set_tags({"guard.num_falls": str(self._num_falls)})
