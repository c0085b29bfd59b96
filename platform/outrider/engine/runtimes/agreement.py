"""Does a runtime give what transformers gives? Tried on a few tokens, in pieces and among rows."""

from __future__ import annotations

from typing import Any

import torch

from outrider.engine.language_model import LanguageModel, RowSlice

_NUM_TOKENS = 9
_SPLIT = 4


def probe_tokens(vocab_size: int) -> list[int]:
    """[9] different ids spread over the vocabulary (fewer than nine: they repeat)."""
    return [(1 + index * max(1, vocab_size // 11)) % vocab_size for index in range(_NUM_TOKENS)]


def reference_logits(module: Any) -> torch.Tensor:
    """Return transformers' own logits [9, vocab] of the probe, in the module's dtype."""
    tokens = probe_tokens(module.config.vocab_size)
    device = next(module.parameters()).device
    with torch.inference_mode():
        logits: torch.Tensor = module(torch.tensor([tokens], device=device), use_cache=False).logits
    return logits[0]


def disagreement(model: LanguageModel, reference: torch.Tensor) -> float:
    """Return the largest difference from `reference` [9, vocab], relative to its largest logit.

    The probe is prefilled in two chunks, the second beside a shorter row of the same tokens: wrong
    positions, a lost mask or rows that meet all show. Needs three blocks of five tokens or more.
    """
    tokens = probe_tokens(model.shape.vocab_size)
    per_row = -(-_NUM_TOKENS // model.shape.block_size)
    first, second = list(range(per_row)), list(range(per_row, 2 * per_row))
    model.forward([RowSlice(tokens[:_SPLIT], 0, first, 0)])
    rest = RowSlice(tokens[_SPLIT:], _SPLIT, first, _NUM_TOKENS - _SPLIT)
    logits = model.forward([RowSlice(tokens[:2], 0, second, 2), rest])
    expected = torch.cat([reference[:2], reference[_SPLIT:]]).to(logits)
    return float((logits - expected).abs().max() / expected.abs().max())
