"""From logits to the token: bias, masks, penalties, temperature, filters, draw.

One position at a time, in the order vLLM documents: bias and masks, penalties, temperature,
min_p, top_k, top_p. The draft goes through the same functions, so that q is what was drawn from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outrider.core import Rule, SamplingParams, TokenLogprob
from outrider.engine.noise import Purpose, exponential, uniform

Logits = NDArray[np.floating]  # [vocab]
Probs = NDArray[np.float64]  # [vocab], sums to 1


@dataclass(slots=True)
class History:
    """The tokens before a position, as penalties and min_tokens see them."""

    prompt: frozenset[int] = frozenset()
    counts: Counter[int] = field(default_factory=Counter)  # generated tokens
    num_output: int = 0
    allowed: NDArray[np.bool_] | None = None  # [vocab]; what a constraint lets follow

    def push(self, token: int) -> None:
        self.counts[token] += 1
        self.num_output += 1

    def after(self, tokens: Sequence[int]) -> History:
        """This history with `tokens` generated behind it; the original is left as it is."""
        longer = History(self.prompt, self.counts.copy(), self.num_output)
        for token in tokens:
            longer.push(token)
        return longer


@dataclass(frozen=True, slots=True)
class TokenChooser:
    """How one request turns logits into a distribution and a token.

    `stop_ids` are the ids that min_tokens forbids: EOS (unless ignored) and the request's own.
    """

    params: SamplingParams
    rule: Rule
    stop_ids: tuple[int, ...] = ()

    def is_plain_argmax(self, num_output: int) -> bool:
        """True where, behind `num_output` tokens, the token is the argmax of the raw logits, if a
        constraint allows that."""
        params = self.params
        return (
            params.is_greedy
            and not params.has_penalties
            and not params.logit_bias
            and num_output >= params.min_tokens
        )

    @property
    def is_deterministic(self) -> bool:
        """True where the token at a position does not depend on what was drafted there."""
        return self.params.is_greedy or self.rule is Rule.COUPLED

    def adjust(self, logits: Logits, history: History) -> Logits:
        """Logits in float64 after bias, masks and penalties."""
        params = self.params
        out = logits.astype(np.float64)
        for token, bias in params.logit_bias.items():
            out[token] += bias
        if history.allowed is not None:
            out[~history.allowed] = -np.inf
        if self.stop_ids and history.num_output < params.min_tokens:
            self._forbid_stops(out)
        if params.has_penalties:
            _penalise(out, params, history)
        return out

    def _forbid_stops(self, out: Logits) -> None:
        """Unless a constraint lets nothing else follow."""
        kept = out[list(self.stop_ids)]
        out[list(self.stop_ids)] = -np.inf
        if out.max() == -np.inf:
            out[list(self.stop_ids)] = kept

    def distribution(self, logits: Logits, history: History) -> Probs:
        """The distribution the next token is drawn from; one-hot when greedy."""
        adjusted = self.adjust(logits, history)
        if self.params.is_greedy:
            return one_hot(int(adjusted.argmax()), adjusted.size)
        return _filtered(adjusted, self.params)

    def choose(self, logits: Logits, history: History, position: int) -> int:
        """The token plain decoding emits at `position` (an index into the whole row)."""
        if self.params.is_greedy:
            return int(self.adjust(logits, history).argmax())
        return self.draw(self.distribution(logits, history), position, Purpose.SAMPLE)

    def draw(self, probs: Probs, position: int, purpose: Purpose) -> int:
        """Draw from `probs`: by shared Gumbel noise under rule coupled, else by inverse CDF."""
        if self.rule is Rule.COUPLED:
            noise = exponential(self.params.seed, position, purpose, probs.size)
            return int((probs / noise).argmax())
        return pick(probs, uniform(self.params.seed, position, purpose))

    def draft(self, logits: Logits, history: History, position: int) -> tuple[int, Probs | None]:
        """The drafter's token and the q it was drawn from (None: one-hot).

        Under rule coupled the noise is the target's own, and q plays no part in acceptance.
        """
        if self.params.is_greedy:
            return int(self.adjust(logits, history).argmax()), None
        probs = self.distribution(logits, history)
        if self.rule is Rule.COUPLED:
            return self.draw(probs, position, Purpose.SAMPLE), None
        return self.draw(probs, position, Purpose.DRAFT), probs


def pick(probs: Probs, u: float) -> int:
    """Inverse CDF: the token whose cell of the unit interval holds `u`."""
    cumulative = np.cumsum(probs)
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    return min(index, int(np.flatnonzero(probs)[-1]))


def one_hot(token: int, size: int) -> Probs:
    probs = np.zeros(size)
    probs[token] = 1.0
    return probs


def _penalise(logits: Logits, params: SamplingParams, history: History) -> None:
    if params.repetition_penalty != 1.0:
        seen = np.fromiter(history.prompt | history.counts.keys(), dtype=np.int64)
        values = logits[seen]
        scale = params.repetition_penalty
        logits[seen] = np.where(values > 0, values / scale, values * scale)
    if history.counts:
        tokens = np.fromiter(history.counts.keys(), dtype=np.int64)
        counts = np.fromiter(history.counts.values(), dtype=np.float64)
        logits[tokens] -= params.frequency_penalty * counts + params.presence_penalty


def _filtered(logits: Logits, params: SamplingParams) -> Probs:
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the likeliest to -inf
        probs = _softmax((logits - logits.max()) / params.temperature)
    if params.min_p > 0.0:
        probs[probs < params.min_p * probs.max()] = 0.0
    if 0 < params.top_k < probs.size:
        _keep_top_k(probs, params.top_k)
    if params.top_p < 1.0:
        _keep_top_p(probs, params.top_p)
    return probs / probs.sum()


def _softmax(logits: Logits) -> Probs:
    shifted: Probs = np.exp(logits - logits.max())
    return shifted / shifted.sum()


def _keep_top_k(probs: Probs, k: int) -> None:
    """Zero all but the k likeliest; ties are kept by the lower id, whatever the platform's sort."""
    order = np.argsort(-probs, kind="stable")
    probs[order[k:]] = 0.0


def _keep_top_p(probs: Probs, top_p: float) -> None:
    """Zero all behind the smallest set of likeliest tokens that holds `top_p` of the mass."""
    nonzero = np.flatnonzero(probs)
    order = nonzero[np.argsort(-probs[nonzero], kind="stable")]
    mass = np.cumsum(probs[order])
    keep = int(np.searchsorted(mass, top_p * mass[-1], side="left")) + 1
    probs[order[keep:]] = 0.0


def token_logprob(logits: Logits, token: int, top: int) -> TokenLogprob:
    """Log probabilities under the raw target: the token's own and the `top` likeliest."""
    raw = logits.astype(np.float64)
    peak = raw.max()
    logprobs = raw - (peak + np.log(np.exp(raw - peak).sum()))
    best = np.argsort(-logprobs, kind="stable")[:top] if top else ()
    likeliest = tuple((int(index), float(logprobs[index])) for index in best)
    return TokenLogprob(token, float(logprobs[token]), likeliest)
