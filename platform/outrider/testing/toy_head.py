"""A tiny random draft head."""

from __future__ import annotations

import torch

from outrider.engine.head import DraftHead, HeadConfig


def toy_head(
    *,
    vocab_size: int,
    hidden_size: int,
    feature_layers: tuple[int, ...] = (0, 1),
    seed: int = 0,
    num_said: int | None = None,
    target_weights: str = "",
    target_tokenizer: str = "",
    scale: float = 0.5,
) -> DraftHead:
    """Random weights in float64; it can say every third token less than the target, or `num_said`.

    The digests are those of the target that it is for.
    """
    said = num_said or vocab_size - vocab_size // 3
    config = HeadConfig(
        target_weights=target_weights,
        target_tokenizer=target_tokenizer,
        vocab_size=vocab_size,
        draft_vocab_size=said,
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_heads=4,
        num_kv_heads=2,
        head_dim=4,
        feature_layers=feature_layers,
        provenance={"made_by": "toy_head"},
    )
    random = torch.Generator().manual_seed(seed)
    head = DraftHead(config, torch.randperm(vocab_size, generator=random)[:said].sort().values)
    head = head.double().eval().requires_grad_(False)
    for weight in head.parameters():
        if weight.dim() > 1:
            weight.normal_(0.0, scale, generator=random)
    return head
