"""Rows of about one length side by side, in an order that depends on the seed and epoch alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import torch

from outrider.distill.corpus import Example
from outrider.distill.features import Features

AnyT = TypeVar("AnyT")
WINDOW_ROWS = 1024  # neighbours of the shuffled rows that are sorted by length
PROMPT_STEP = 32  # tokens by which prompts of a batch may differ, mostly


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows of at most n positions (see `Features`); shorter ones are filled up with zeros.

    What is told is kept by the head's own numbers of tokens. Tokens that it can't say have
    probability 0 here: the rest of a distribution is not scaled up, so that a position counts as
    much as the head can say there.
    """

    begin: int  # first position that tells a token of an answer, of any row; m = n - begin
    features: torch.Tensor  # [B, n, F]
    following: torch.Tensor  # [B, n] id of the token behind each position
    begins: torch.Tensor  # [B] first position of each row that tells a token of the answer
    ends: torch.Tensor  # [B] positions of the row
    top_ids: torch.Tensor  # [B, m, K] numbers of the head's tokens; 0 where the head has none
    top_probs: torch.Tensor  # [B, m, K] float32, 0 where the head can't say it
    likeliest: torch.Tensor  # [B, m] number of the likeliest token; below 0 where the head has none

    def to(self, device: torch.device) -> Self:
        tensors = {name: getattr(self, name).to(device) for name in self.__slots__[1:]}
        return replace(self, **tensors)

    def is_told(self, step: int) -> torch.Tensor:
        """[B, m] where a draft of `step` + 1 tokens that begins in the answer has its last one."""
        most, device = self.following.shape[1], self.following.device
        places = torch.arange(self.begin, most, device=device)[None]
        return (places - step >= self.begins[:, None]) & (places < self.ends[:, None])


def collated(rows: Sequence[tuple[Example, Features]], numbers: torch.Tensor) -> Batch:
    """`numbers` [V]: the head's number of each of the target's tokens, -1 where it has none."""
    most = max(len(example.tokens) - 2 for example, _ in rows)
    first = min(example.num_prompt - 1 for example, _ in rows)
    width, num_top = rows[0][1].features.shape[1], rows[0][1].top_ids.shape[1]
    features = torch.zeros(len(rows), most, width, dtype=rows[0][1].features.dtype)
    following = torch.zeros(len(rows), most, dtype=torch.int64)
    ids = torch.full((len(rows), most - first, num_top), -1, dtype=torch.int64)
    logprobs = torch.full((len(rows), most - first, num_top), -torch.inf)
    for number, (example, found) in enumerate(rows):
        end, begin = len(example.tokens) - 2, example.num_prompt - 1
        features[number, :end] = found.features
        following[number, :end] = torch.tensor(example.tokens[1:-1])
        told = slice(begin - first, end - first)
        ids[number, told] = numbers[found.top_ids.long()]
        logprobs[number, told] = found.top_logprobs.float()
    return Batch(
        begin=first,
        features=features,
        following=following,
        begins=torch.tensor([example.num_prompt - 1 for example, _ in rows]),
        ends=torch.tensor([len(example.tokens) - 2 for example, _ in rows]),
        top_ids=ids.clamp(min=0),
        top_probs=torch.where(ids < 0, 0.0, logprobs.exp()),
        likeliest=ids[..., 0],
    )


def numbers_of(ids: Sequence[int], vocab_size: int) -> torch.Tensor:
    """[V] the place of each of the target's tokens in `ids`, -1 where it is not among them."""
    numbers = torch.full((vocab_size,), -1, dtype=torch.int64)
    numbers[torch.tensor(ids, dtype=torch.int64)] = torch.arange(len(ids))
    return numbers


def packed(
    examples: Sequence[Example], batch_tokens: int, seed: int, epoch: int
) -> list[list[int]]:
    """Numbers of rows, those of a batch together: at most `batch_tokens`, filling included."""
    order = shuffled(range(len(examples)), f"rows {seed} {epoch}")
    packs: list[list[int]] = []
    for begin in range(0, len(order), WINDOW_ROWS):
        window = order[begin : begin + WINDOW_ROWS]
        window.sort(key=lambda at: _sizes(examples[at]))
        packs += _packs(window, examples, batch_tokens)
    return shuffled(packs, f"packs {seed} {epoch}")


def _packs(
    numbers: Sequence[int], examples: Sequence[Example], batch_tokens: int
) -> list[list[int]]:
    """Neighbours together; the longest says how wide a pack is."""
    packs: list[list[int]] = [[]]
    longest = 0
    for number in numbers:
        longest = max(longest, len(examples[number].tokens))
        if packs[-1] and (len(packs[-1]) + 1) * longest > batch_tokens:
            packs.append([])
            longest = len(examples[number].tokens)
        packs[-1].append(number)
    return packs


def _sizes(example: Example) -> tuple[int, int]:
    """Prompts are looked at only: with prompts of one size, little but answers is computed."""
    return example.num_prompt // PROMPT_STEP, len(example.tokens)


def shuffled(items: Sequence[AnyT], name: str) -> list[AnyT]:
    """By hashes of `name` and the place: the same on every machine."""

    def digest(at: int) -> bytes:
        return hashlib.blake2b(f"{name} {at}".encode(), digest_size=8).digest()

    return [items[at] for at in sorted(range(len(items)), key=digest)]
