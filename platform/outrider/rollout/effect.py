"""What a simulated candidate is truly like, and under what traffic it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outrider.config.schema import GateSettings
from outrider.rollout.gates import ratios_on
from outrider.telemetry import meters


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A candidate's true figures, as ratios to stable's; those that are not named are equal."""

    name: str
    ratios: Mapping[str, float] = field(default_factory=dict)
    error_increase: float = 0.0

    def ratio(self, figure: str) -> float:
        return self.ratios.get(figure, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests and how much they differ among each other."""

    per_s: float = 2.0  # requests of both arms
    variation: float = 0.5  # standard deviation over mean of the log-normal latencies
    hiccup_share: float = 0.0  # of the requests, which take `hiccup` times as long
    hiccup: float = 10.0
    error_ratio: float = 0.002  # of stable's requests


EVEN = Effect(name="as good as stable")
USUAL = Traffic()


def slower(share: float) -> Effect:
    """By this share of the tokens per second, in all that follows from them."""
    left = 1.0 - share
    return Effect(
        name=f"{share:.0%} slower",
        ratios={
            meters.TOKENS_PER_S.name: left,
            meters.INTER_TOKEN_S.name: 1.0 / left,
            meters.TOTAL_S.name: 1.0 / left,
        },
    )


def at_floors(gates: GateSettings) -> Effect:
    """The worst that must not be rolled back: every figure lies on its bound."""
    return Effect(
        name="at every bound",
        ratios={gate.figure: bound for gate, bound in ratios_on(gates)},
        error_increase=gates.max_error_increase,
    )
