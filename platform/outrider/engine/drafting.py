"""What a drafter is shown of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from outrider.engine.drafters import DraftRow, Proposal, Sampler, nothing_forced
from outrider.engine.row import Row


def make_draft_row(row: Row, vocab_size: int) -> DraftRow:
    """The drafter's lasting view of `row`; `tokens` grows as the row does."""
    forced = nothing_forced if row.matcher is None else row.matcher.forced
    sampler = _sampler(row, vocab_size)
    return DraftRow(row.row_id, row.request, row.tokens, sampler, forced, _takes_argmax(row))


def permitted(row: Row, proposal: Proposal) -> Proposal:
    """The proposal, cut at the first token that the row's constraint forbids.

    A drawn draft stays as it is (law 4: its length may not depend on the tokens drawn): where its
    q gave a forbidden token anything, the target rejects it.
    """
    if row.matcher is None or proposal.q is not None or not proposal.tokens:
        return proposal
    length = row.matcher.num_allowed(proposal.tokens)
    return replace(proposal, tokens=proposal.tokens[:length])


def _takes_argmax(row: Row) -> Callable[[int], bool]:
    def takes(num_drafted: int) -> bool:
        num_output = row.history.num_output + num_drafted
        return row.matcher is None and row.chooser.is_plain_argmax(num_output)

    return takes


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
