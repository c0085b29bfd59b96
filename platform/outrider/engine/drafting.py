"""What a drafter is shown of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from outrider.engine.drafters import DraftRow, Proposal, Sampler
from outrider.engine.row import Row


def make_draft_row(row: Row, vocab_size: int) -> DraftRow:
    """The drafter's lasting view of `row`; `tokens` grows as the row does."""
    return DraftRow(row.row_id, row.request, row.tokens, _sampler(row, vocab_size))


def permitted(row: Row, proposal: Proposal) -> Proposal:
    """The proposal, cut at the first token that the row's constraint forbids.

    Law 4 holds: a token of a one-hot draft follows from the prefix, and a drawn one comes from a
    q that gives forbidden tokens nothing.
    """
    if row.matcher is None or not proposal.tokens:
        return proposal
    length = row.matcher.num_allowed(proposal.tokens)
    q = None if proposal.q is None else proposal.q[:length]
    return replace(proposal, tokens=proposal.tokens[:length], q=q)


def _sampler(row: Row, vocab_size: int) -> Sampler:
    """Law 3: q is reported after everything that shapes the draw has been applied."""

    def sample(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, torch.Tensor | None]:
        scores = logits[:vocab_size].double().numpy(force=True)
        history = row.history.after(drafted)
        if row.matcher is not None:
            history.allowed = row.matcher.allowed(drafted)
        token, q = row.chooser.draft(scores, history, len(row.tokens) + len(drafted))
        return token, None if q is None else torch.from_numpy(q)

    return sample
