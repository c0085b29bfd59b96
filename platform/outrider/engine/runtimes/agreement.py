"""Does a runtime give what transformers gives? Tried on a few tokens, in pieces and among rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from outrider.engine.language_model import FeatureModel, RowSlice
from outrider.engine.runtimes.layer_tap import LayerTap

_NUM_TOKENS = 9
_SPLIT = 4


def probe_tokens(vocab_size: int) -> list[int]:
    """[9] different ids spread over the vocabulary (fewer than nine: they repeat)."""
    return [(1 + index * max(1, vocab_size // 11)) % vocab_size for index in range(_NUM_TOKENS)]


@dataclass(frozen=True, slots=True)
class Reference:
    """Transformers' own answer to the probe, in the module's dtype."""

    logits: torch.Tensor  # [9, vocab]
    features: torch.Tensor | None  # [9, feature_size]; None where no layers are asked for


def reference_of(module: Any, feature_layers: Sequence[int] = ()) -> Reference:
    """Run the module as it is on the probe."""
    tokens = probe_tokens(module.config.vocab_size)
    device = next(module.parameters()).device
    tap = LayerTap(module, feature_layers) if feature_layers else None
    with torch.inference_mode():
        logits = module(torch.tensor([tokens], device=device), use_cache=False).logits
    if tap is None:
        return Reference(logits[0], None)
    tap.close()
    return Reference(logits[0], tap.features())


def disagreement(model: FeatureModel, reference: Reference) -> float:
    """Return the largest difference from `reference`, relative to its largest logit or feature.

    The probe is prefilled in two chunks, the second beside a shorter row of the same tokens: wrong
    positions, a lost mask or rows that meet all show. Needs three blocks of five tokens or more.
    """
    tokens = probe_tokens(model.shape.vocab_size)
    per_row = -(-_NUM_TOKENS // model.shape.block_size)
    first, second = list(range(per_row)), list(range(per_row, 2 * per_row))
    model.forward([RowSlice(tokens[:_SPLIT], 0, first, 0)])
    rest = RowSlice(tokens[_SPLIT:], _SPLIT, first, _NUM_TOKENS - _SPLIT)
    logits = model.forward([RowSlice(tokens[:2], 0, second, 2), rest])
    differences = [_difference(logits, reference.logits)]
    if reference.features is not None:
        differences.append(_difference(model.features, reference.features))
    return float(torch.stack(differences).max())  # NaN where one is


def _difference(given: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Of the positions that the last forward was asked for, relative to the largest number."""
    expected = torch.cat([reference[:2], reference[_SPLIT:]]).to(given)
    return (given - expected).abs().max().double() / expected.abs().max()
