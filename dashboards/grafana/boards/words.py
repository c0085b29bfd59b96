"""States as dashboards name and colour them, each in the order of its query's values."""

from __future__ import annotations

from boards.panels import BAD, GOOD, NEUTRAL, WARN, States
from outrider.core import Mode
from outrider.engine.breaker import Phase as Breaker
from outrider.rollout.phase import ENDS
from outrider.rollout.phase import Phase as Rollout
from outrider.rollout.verdict import Verdict
from outrider.serving.guard_state import Phase as Guard

GUARD = (Guard.CLOSED, Guard.PROBING, Guard.OPEN)
GUARD_WORDS: States = (("as told", GOOD), ("probing", WARN), ("all plain", BAD))
BREAKER = (Breaker.CLOSED, Breaker.HALF_OPEN, Breaker.OPEN)
BREAKER_WORDS: States = (("closed", GOOD), ("half-open", WARN), ("open", BAD))
MODE = (Mode.SPECULATIVE, Mode.PLAIN)
MODE_WORDS: States = (("speculative", GOOD), ("plain", "#9E9E9E"))
VERDICT = (Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.FAIL)
VERDICT_WORDS: States = (("inconclusive", WARN), ("pass", GOOD), ("fail", BAD))
ROLLOUT = tuple(Rollout)
NO_YES: States = (("no", NEUTRAL), ("yes", WARN))
CONTROLLED: States = (("nobody", BAD), ("a process", GOOD))
RUNNING: States = (("no", NEUTRAL), ("yes", GOOD))


def _colour(phase: Rollout) -> str:
    if phase in ENDS:
        return GOOD if phase is Rollout.PROMOTED else BAD
    return "#FF9830" if phase is Rollout.CANARY else "#5794F2"


ROLLOUT_WORDS: States = tuple((each.value.replace("_", " "), _colour(each)) for each in ROLLOUT)
