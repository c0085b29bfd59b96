"""What the target's layers made of a row, and what it would say next: what a head learns from.

At position i the head reads the target's feature at i and the embedding of token i + 1, and tells
token i + 2 (`engine.head.module`). A row of L tokens with P of a prompt has L - 2 such positions,
and those from P - 1 on tell tokens of the answer: there the target's own distribution is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from outrider.core import Fault
from outrider.distill.corpus import Example
from outrider.engine.language_model import FeatureModel, RowSlice

NUM_TOP = 32  # tokens of a distribution that are kept; the rest is a few thousandths


@dataclass(frozen=True, slots=True)
class Features:
    """Of one row. n = L - 2 positions, of which the last a = L - P - 1 tell tokens of the answer.

    Kept are the target's `K` likeliest tokens, likeliest first, with their natural logarithms of
    probability under its whole vocabulary (temperature 1).
    """

    features: torch.Tensor  # [n, F]
    top_ids: torch.Tensor  # [a, K] int32
    top_logprobs: torch.Tensor  # [a, K] float16


def computed(
    model: FeatureModel, examples: Iterable[Example], *, most_tokens: int, dtype: torch.dtype
) -> Iterator[Features]:
    """Of every row in order, many rows in a forward. Features are kept as `dtype`.

    Raises Fault where the target gives NaN.
    """
    shape = model.shape
    most_blocks = min(most_tokens // shape.block_size, shape.num_blocks)
    for rows in batches(examples, most_blocks, shape.block_size):
        logits = model.forward(_slices(rows, model.shape.block_size))
        yield from _split(rows, model.features, logits, dtype)


def batches(
    examples: Iterable[Example], most_blocks: int, block_size: int
) -> Iterator[list[Example]]:
    """Neighbours together, at most `most_blocks` of KV (or one row)."""
    rows: list[Example] = []
    num = 0
    for example in examples:
        needed = _num_blocks(example, block_size)
        if rows and num + needed > most_blocks:
            yield rows
            rows, num = [], 0
        rows.append(example)
        num += needed
    if rows:
        yield rows


def _slices(rows: Sequence[Example], block_size: int) -> list[RowSlice]:
    """The last token of a row is told, not read."""
    slices, begin = [], 0
    for row in rows:
        tokens = row.tokens[:-1].tolist()
        end = begin + _num_blocks(row, block_size)
        slices.append(RowSlice(tokens, 0, range(begin, end), row.num_answer - 1))
        begin = end
    return slices


def _num_blocks(row: Example, block_size: int) -> int:
    return -(-len(row.tokens) // block_size)


def _split(
    rows: Sequence[Example], features: torch.Tensor, logits: torch.Tensor, dtype: torch.dtype
) -> Iterator[Features]:
    ids, logprobs = _top(logits)
    begin = told = 0
    for row in rows:
        end, until = begin + len(row.tokens) - 1, told + row.num_answer - 1
        yield Features(
            features=features[begin : end - 1].to(dtype=dtype, device="cpu", copy=True),
            top_ids=ids[told:until],
            top_logprobs=logprobs[told:until],
        )
        begin, told = end, until


def _top(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[N, V] to ids [N, K] and logarithms of probability [N, K]."""
    scores = logits.float()
    total = scores.logsumexp(dim=-1, keepdim=True)
    if not bool(total.isfinite().all()):
        raise Fault("the target's scores are not finite numbers: there is nothing to learn")
    top, ids = scores.topk(min(NUM_TOP, scores.shape[-1]), dim=-1)
    return ids.to("cpu", torch.int32), (top - total).to("cpu", torch.float16)


def chosen_layers(wanted: Sequence[int], num_layers: int) -> tuple[int, ...]:
    """`wanted`, else a low, a middle and the last layer (EAGLE-3 takes low, middle, high)."""
    if wanted:
        return tuple(wanted)
    low, middle, high = min(2, (num_layers - 1) // 2), num_layers // 2, num_layers - 1
    return tuple(sorted({low, middle, high}))
