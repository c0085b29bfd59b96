"""Stage 1: propose a block. One Protocol; each drafter is a file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from outrider.core import Request

Sampler = Callable[[torch.Tensor, Sequence[int]], tuple[int, torch.Tensor | None]]
"""(draft logits [vocab], tokens drafted before in this block) -> (token, q [vocab] or None).

The engine makes one per row: it applies the row's temperature, filters, penalties, bias and masks
and draws with the row's own noise, so that q is exactly what was drawn from (None: one-hot).
"""


def nothing_forced() -> list[int]:
    return []


def never(num_drafted: int) -> bool:
    return False


def unknown(offer: Offer) -> float:
    return 1.0


@dataclass(slots=True)
class DraftRow:
    """What a drafter sees of one row. It must not keep or change `tokens`."""

    row_id: int  # unique for the life of the engine; `Drafter.release` ends it
    request: Request
    tokens: Sequence[int]  # prompt and committed tokens, in order
    sampler: Sampler
    forced: Callable[[], list[int]] = nothing_forced  # tokens that its constraint leaves no choice
    # True where, behind so many drafted tokens, the sampler would give the raw argmax, one-hot
    takes_argmax: Callable[[int], bool] = never
    may_look: bool = True  # in this round: an offer may take draft forwards
    # Tokens that the engine expects of an offer, less what drafting them costs: for comparisons
    worth: Callable[[Offer], float] = unknown


@dataclass(frozen=True, slots=True)
class Offer:
    """What a drafter could do for a row, told before anything is drawn.

    `levels[i]` is the acceptance class of draft position i, a small int that depends on the prefix
    only (for n-gram: the length of the match that would back it). `name` says which drafter made
    it: acceptance is learnt per (name, level). An empty `levels` is no offer.
    """

    name: str
    levels: tuple[int, ...]
    num_steps: int = 0  # draft forwards needed per drafted token: 0 for look-ups, 1 for a model
    num_run: int = 0  # what all offers of the round took already, in draft forwards of one token
    num_seen: int = 0  # draft positions that those have told: they need no further step
    num_first: int = 0  # draft forwards that the first token takes besides its own


NO_OFFER = Offer("none", ())


@dataclass(slots=True)
class Proposal:
    """A block for one row. `q` is None for one-hot drafts, else [len(tokens), vocab] in float64."""

    tokens: list[int]
    q: torch.Tensor | None = None
    failure: str | None = None  # why there is nothing; the round becomes plain
    num_caught_up: int = 0  # tokens of KV the drafter had to compute late


@dataclass(slots=True)
class Drafted:
    """All proposals of a round, in the order of the rows asked for."""

    proposals: list[Proposal] = field(default_factory=list)
    num_steps: int = 0  # draft forwards run


class Drafter(Protocol):
    """Proposes tokens. It may fail, be slow or be wrong; it never changes what is emitted."""

    @property
    def name(self) -> str: ...

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        """Say for each row how long a draft could be (at most its limit), cheaply."""
        ...

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        """Draft exactly up to `lengths[i]` >= 1 tokens for row i of those last offered."""
        ...

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        """The row has ended with these tokens (prompt and output): forget it, learn from it."""
        ...


@runtime_checkable
class SafeDrafter(Drafter, Protocol):
    """A drafter that never raises, and tells what went wrong where no proposal carries it."""

    def take_failures(self) -> list[str]:
        """Failures since last asked, one line each; the breaker hears of them."""
        ...


@dataclass(frozen=True, slots=True)
class Read:
    """What the target has just computed of one row, drafted tokens included.

    A drafted token that was then rejected is found by comparing `tokens` with what the row has
    committed. Positions may be told again (a rejected draft, preemption) and may never be told
    (what the target's prefix cache had).
    """

    row_id: int
    position: int  # of tokens[0] in the row
    tokens: Sequence[int]  # [n] fed to the target at position, position + 1, ...
    features: torch.Tensor  # [n, feature_size] float32; copy what must outlive the call


@runtime_checkable
class FeatureReader(Drafter, Protocol):
    """A drafter that drafts from what the target's layers made of the tokens."""

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """The target's decoder layers that it wants (see `FeatureModel`); empty: it reads none."""
        ...

    def read(self, reads: Sequence[Read]) -> None:
        """Take in what a forward gave, prefill chunks too; rows that never draft are left out."""
        ...
