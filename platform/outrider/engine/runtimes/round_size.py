"""How many tokens a round is filled up to, so that the graph runs well."""

from __future__ import annotations

from dataclasses import dataclass

# Measured with 135M parameters in bfloat16 on two Zen 4 cores, OpenVINO 2026.4: up to six tokens
# cost the same (one or two even more than three), and a graph that meets another size than in the
# round before first spends as long as six tokens of matrix products on getting ready.
_LEAST = 6
_CHANGE = 6


@dataclass(slots=True)
class RoundSize:
    """Stays on a size while filling up costs less than changing it.

    Ski rental: fillers are rented until they have cost as much as a change, so that at no time
    more than twice the best possible was spent.
    """

    size: int = _LEAST
    wasted: int = 0

    def fit(self, num_tokens: int) -> int:
        """The size for a round of `num_tokens`, at least as large."""
        wanted = max(num_tokens, _LEAST)
        self.wasted += self.size - wanted
        if wanted > self.size or self.wasted > _CHANGE:
            self.size, self.wasted = wanted, 0
        return self.size
