"""The guard of a whole release: takes speculation back on all its replicas where it does not pay
over all of them, and tries it again later. Pure.

It stands above the breakers of engines and rows (`engine.breaker`), which go on below it: they see
one engine's rounds, it sees what every replica drafted and got.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from outrider.config.schema import ServingSettings
from outrider.engine.draft_sums import DraftSums

HYSTERESIS = 1.5  # probes must accept so many times the ratio below which the release fell
PAYS = 1.0  # goodput over plain decoding's that probes must reach


class Phase(StrEnum):
    """Where a guard stands."""

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Phase.CLOSED: "The release decodes as it was told to.",
    Phase.OPEN: "Drafting did not pay over all replicas; they all decode plainly for a while.",
    Phase.PROBING: "All replicas decode plainly, but for a small share of rows that draft again.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What all replicas drafted, and in how many seconds: of the sliding window while closed, of
    the whole trial while probing.
    """

    drafts: DraftSums
    span_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """All that a guard remembers but its window. Times are of one monotonic clock, in seconds."""

    phase: Phase = Phase.CLOSED
    since_s: float = 0.0  # when this phase began
    wait_s: float = 0.0  # of the last fall, or the current one; 0: it never fell
    reason: str = ""  # of the last transition, in words


def advance(state: GuardState, seen: Seen, settings: ServingSettings, now_s: float) -> GuardState:
    """The state at `now_s`.

    1. Open: probing once the wait is over, whatever was seen.
    2. Too little was drafted to say anything: nothing changes. No data is no evidence.
    3. Closed: opens where too little was accepted, or where drafting surely cost more than it gave.
    4. Probing: closes where the probes accept clearly more and pay; else opens again and waits
       twice as long.
    """
    if state.phase is Phase.OPEN:
        is_due = now_s - state.since_s >= state.wait_s
        return _moved(state, Phase.PROBING, "the wait is over", now_s) if is_due else state
    if seen.drafts.drafted < settings.fallback_min_drafted:
        return state
    if state.phase is Phase.PROBING:
        return _while_probing(state, seen.drafts, settings, now_s)
    # A burst is no trend: the evidence must be spread over half a window.
    if seen.span_s < settings.fallback_window_s / 2:
        return state
    failing = shortfall(
        seen.drafts, settings.fallback_min_acceptance, settings.fallback_min_goodput
    )
    return _opened(state, failing, settings, now_s) if failing else state


def lasting(state: GuardState, settings: ServingSettings) -> str:
    """Why it is open again: tried once more, drafting did not pay either. Empty where it is not.

    A first fall may have been a bad minute; it says nothing of the release yet.
    """
    is_again = state.phase is Phase.OPEN and state.wait_s > settings.fallback_wait_s
    return state.reason if is_again else ""


def _while_probing(
    state: GuardState, probes: DraftSums, settings: ServingSettings, now_s: float
) -> GuardState:
    failing = shortfall(probes, higher(settings.fallback_min_acceptance), _pays(settings))
    if failing:
        return _opened(state, f"probes: {failing}", settings, now_s)
    return _moved(state, Phase.CLOSED, f"probes: {figures(probes)}", now_s)


def shortfall(drafts: DraftSums, min_acceptance: float, min_goodput: float) -> str:
    """Which floor is missed, in words; empty where none is. What is unknown misses none."""
    acceptance, goodput = drafts.acceptance_ratio, drafts.goodput_ratio
    if acceptance is not None and acceptance < min_acceptance:
        return f"{figures(drafts)}; at least {min_acceptance:.1%} must be accepted"
    if goodput is not None and goodput < min_goodput:
        return f"{figures(drafts)}; it must be at least {min_goodput:.2f} times"
    return ""


def figures(drafts: DraftSums) -> str:
    said = f"{drafts.accepted} of {drafts.drafted} drafted tokens were accepted"
    if drafts.acceptance_ratio is not None:
        said += f" ({drafts.acceptance_ratio:.1%})"
    if drafts.goodput_ratio is not None:
        said += f", {drafts.goodput_ratio:.2f} times plain decoding's goodput"
    return said


def higher(min_acceptance: float) -> float:
    """What probes must accept: more than what a release falls at, and always within reach."""
    return min(HYSTERESIS * min_acceptance, (1.0 + min_acceptance) / 2)


def _pays(settings: ServingSettings) -> float:
    return max(PAYS, settings.fallback_min_goodput) if settings.fallback_min_goodput else 0.0


def _opened(state: GuardState, reason: str, settings: ServingSettings, now_s: float) -> GuardState:
    """Wait twice as long as before, unless it had held closed for as long as the longest wait."""
    held_s = now_s - state.since_s if state.phase is Phase.CLOSED else 0.0
    is_fresh = state.wait_s == 0.0 or held_s >= settings.fallback_max_wait_s
    wait_s = settings.fallback_wait_s if is_fresh else 2 * state.wait_s
    opened = _moved(state, Phase.OPEN, reason, now_s)
    return replace(opened, wait_s=min(wait_s, settings.fallback_max_wait_s))


def _moved(state: GuardState, phase: Phase, reason: str, now_s: float) -> GuardState:
    return replace(state, phase=phase, since_s=now_s, reason=reason)
