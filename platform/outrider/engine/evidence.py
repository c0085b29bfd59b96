"""Anytime-valid evidence: the wealth of a gambler who bets against a hypothesis on a mean."""

from __future__ import annotations

from dataclasses import dataclass

_LARGEST_STAKE = 0.9  # share of the wealth that one observation may cost
_PRIOR_SQUARE = 0.1  # squared payoff assumed before the first observation: no bet on two of them


@dataclass(frozen=True, slots=True)
class Evidence:
    """Betting martingale against "the mean payoff is at most 0, whatever came before".

    Under that hypothesis `wealth` is a non-negative supermartingale that starts at 1, so by
    Ville's inequality P(it ever reaches 1/alpha) <= alpha: it may be looked at after every
    observation. Waudby-Smith & Ramdas 2023, "Estimating means of bounded random variables by
    betting", eq. (26), with their approximate GRAPA stake (eq. 36) from discounted moments.
    A stake is chosen before its observation; while the record speaks for the hypothesis it is 0,
    so good times do not eat the wealth that would notice bad ones.
    """

    wealth: float = 1.0
    payoff: float = 0.0  # discounted sum
    square: float = _PRIOR_SQUARE  # discounted sum of squares

    def bet(self, payoff: float, worst: float, memory: float) -> Evidence:
        """Take in one payoff >= -worst. `memory` is the discount of the moments per observation."""
        stake = min(max(self.payoff / self.square, 0.0), _LARGEST_STAKE / worst)
        return Evidence(
            self.wealth * (1.0 + stake * max(payoff, -worst)),
            memory * self.payoff + payoff,
            memory * self.square + (1.0 - memory) * _PRIOR_SQUARE + payoff * payoff,
        )


NO_EVIDENCE = Evidence()
