"""The guard of one release: its state, its window, and what its replicas are to be told. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from outrider.config.schema import ServingSettings
from outrider.core import Mode
from outrider.serving.guard_state import GuardState, Phase, advance
from outrider.serving.guard_window import GuardWindow
from outrider.serving.messages import Control, Pulse


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A guard has changed its phase."""

    release: str
    phase: Phase
    reason: str
    at_s: float  # seconds since 1970

    def __str__(self) -> str:
        return f"release {self.release}: {self.phase.sentence} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What an operator said comes first: where that is plain, nothing is brought back, and each
    new word of his begins a new guard.
    """

    said: Control = Control()  # noqa: RUF009 - frozen
    state: GuardState = GuardState()  # noqa: RUF009
    window: GuardWindow = GuardWindow()  # noqa: RUF009

    @classmethod
    def resumed(cls, controls: Sequence[Control], now_s: float) -> Guard:
        """Out of what the replicas were told last, by a gateway that is gone. A wait begins anew.

        Where they differ, the most careful one counts: it was told to some when the gateway went.
        """
        control = max(controls, key=lambda each: _phase_of(each) is not Phase.CLOSED)
        is_guards = control.guard_wait_s > 0.0
        said = Control(
            mode=Mode.SPECULATIVE if is_guards else control.mode,
            max_draft_length=control.max_draft_length,
        )
        state = GuardState(
            phase=_phase_of(control),
            since_s=now_s,
            wait_s=control.guard_wait_s,
            reason="so it was when the gateway began" if is_guards else "",
        )
        return cls(said=said, state=state)

    def told(self, control: Control, now_s: float) -> Guard:
        """An operator has spoken."""
        state = GuardState(since_s=now_s, reason=f"an operator said {control.mode.value}")
        return Guard(said=control, state=state, window=self.window.emptied())

    def after(self, pulses: Sequence[Pulse], settings: ServingSettings, now_s: float) -> Guard:
        """With what the replicas tell now."""
        length_s = inf if self.state.phase is Phase.PROBING else settings.fallback_window_s
        window = self.window.after(pulses, now_s, length_s)
        if self.said.mode is Mode.PLAIN:
            return replace(self, window=window.emptied())
        state = advance(self.state, window.seen, settings, now_s)
        has_moved = state.phase is not self.state.phase
        return replace(self, state=state, window=window.emptied() if has_moved else window)

    def control(self, settings: ServingSettings) -> Control:
        """How the replicas are to decode."""
        phase, wait_s = self.state.phase, self.state.wait_s
        if phase is Phase.CLOSED:
            return replace(self.said, guard_wait_s=wait_s)
        share = settings.fallback_probe_share if phase is Phase.PROBING else None
        return replace(self.said, mode=Mode.PLAIN, probe_share=share, guard_wait_s=wait_s)


def _phase_of(control: Control) -> Phase:
    if control.guard_wait_s == 0.0 or control.mode is Mode.SPECULATIVE:
        return Phase.CLOSED
    return Phase.OPEN if control.probe_share is None else Phase.PROBING
