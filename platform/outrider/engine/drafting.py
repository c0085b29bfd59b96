"""What a drafter is shown of a row."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from outrider.engine.drafters import DraftRow, Sampler
from outrider.engine.row import Row


def make_draft_row(row: Row, vocab_size: int) -> DraftRow:
    """The drafter's lasting view of `row`; `tokens` grows as the row does."""
    return DraftRow(row.row_id, row.request, row.tokens, _sampler(row, vocab_size))


def _sampler(row: Row, vocab_size: int) -> Sampler:
    """Law 3: q is reported after everything that shapes the draw has been applied."""

    def sample(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, torch.Tensor | None]:
        scores = logits[:vocab_size].double().numpy(force=True)
        history = row.history.after(drafted)
        token, q = row.chooser.draft(scores, history, len(row.tokens) + len(drafted))
        return token, None if q is None else torch.from_numpy(q)

    return sample
