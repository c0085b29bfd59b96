"""A smaller causal model as drafter (Leviathan et al. 2023, section 2; Chen et al. 2023).

Its KV is kept up lazily: whatever the row gained while it did not draft is read at its next draft.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Offer, Proposal
from outrider.engine.drafters.block_q import stacked_q
from outrider.engine.drafters.draft_kv import DraftKV, RowKV
from outrider.engine.language_model import LanguageModel, RowSlice

MAX_LEVEL = 7  # positions from here on share one acceptance class
CHUNK_TOKENS = 512  # most tokens one forward reads while it catches up


@dataclass(slots=True)
class _Draft:
    """One row's block while it grows."""

    row: DraftRow
    length: int  # tokens wanted
    kv: RowKV
    tokens: list[int] = field(default_factory=list)
    qs: list[torch.Tensor | None] = field(default_factory=list)  # each [vocab] or one-hot
    failure: str | None = None
    num_late: int = 0

    @property
    def wants_more(self) -> bool:
        return self.failure is None and len(self.tokens) < self.length

    @property
    def unread(self) -> Sequence[int]:
        """Tokens to read before the next one can be drawn; at least one."""
        return self.tokens[-1:] or self.row.tokens[self.kv.num_confirmed :]

    def slice(self, num_tokens: int, num_logits: int) -> RowSlice:
        unread, blocks = self.unread[:num_tokens], self.kv.table.blocks
        return RowSlice(unread, self.kv.num_valid, blocks, num_logits)

    def mark_read(self, num_tokens: int) -> None:
        if self.tokens:
            self.kv.num_read += num_tokens
        else:
            self.kv.num_confirmed += num_tokens

    def draw(self, logits: torch.Tensor) -> None:
        """Let the engine draw the next token from target-wide logits [vocab]."""
        token, q = self.row.sampler(logits, self.tokens)
        self.tokens.append(token)
        self.qs.append(q)
        self.kv.drafted.append(token)

    def proposal(self, vocab_size: int) -> Proposal:
        q = stacked_q(self.tokens, self.qs, vocab_size)
        return Proposal(self.tokens, q, self.failure, self.num_late)


class ModelDrafter:
    """Drafts with `model`, all rows of a round together; step j is one forward over those still on.

    `vocab_size` is the target's: samplers see rows of that width, cut or padded with -inf. A row
    whose logits become NaN or infinite ends its block there, and says so in `Proposal.failure`;
    the tokens drawn before stand, because dropping drawn tokens would bend the distribution.
    """

    name = "model"

    def __init__(
        self, model: LanguageModel, *, vocab_size: int, chunk_tokens: int = CHUNK_TOKENS
    ) -> None:
        self._model = model
        self._vocab_size = vocab_size
        self._chunk_tokens = chunk_tokens
        self._kv = DraftKV(model.shape)
        shape = model.shape
        self._max_tokens = min(shape.context_length, shape.num_blocks * shape.block_size)

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        """As many tokens as the limit, the draft's context and its whole pool allow."""
        return [self._offer_one(row, limit) for row, limit in zip(rows, limits, strict=True)]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        busy = {row.row_id for row in rows}
        pairs = zip(rows, lengths, strict=True)
        drafts = [self._admit(row, length, busy) for row, length in pairs]
        num_steps = self._catch_up(drafts)
        while active := [draft for draft in drafts if draft.wants_more]:
            self._step(active)
            num_steps += 1
        return Drafted([draft.proposal(self._vocab_size) for draft in drafts], num_steps)

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self._kv.drop(row_id)

    def check_integrity(self) -> None:
        """Raise AssertionError unless every block of the draft pool is accounted for."""
        self._kv.check_integrity()

    @property
    def num_free_blocks(self) -> int:
        return self._kv.num_free

    def _offer_one(self, row: DraftRow, limit: int) -> Offer:
        # The last token drafted is not read, hence the + 1.
        length = min(limit, self._max_tokens - len(row.tokens) + 1)
        if length < 1:
            return NO_OFFER
        return Offer(self.name, tuple(min(i, MAX_LEVEL) for i in range(length)), num_steps=1)

    def _admit(self, row: DraftRow, length: int, busy: set[int]) -> _Draft:
        """Settle what the last round left behind, and make room for this block."""
        kv = self._kv.open(row.row_id, num_known=len(row.request.prompt_ids))
        num_expected = kv.settle(row.tokens)
        self._kv.adopt_prefix(kv, row.tokens)
        failure = self._kv.reserve(kv, len(row.tokens) + length - 1, busy)
        if failure is not None:
            # Blocks of a row that can't go on would keep the others from going on.
            self._kv.evict(row.row_id)
            return _Draft(row, length, kv, failure=failure)
        num_late = len(row.tokens) - 1 - max(num_expected, kv.num_confirmed)
        return _Draft(row, length, kv, num_late=max(0, num_late))

    def _catch_up(self, drafts: Sequence[_Draft]) -> int:
        """Read in chunks until one more forward can read the rest; return the forwards run."""
        active = [draft for draft in drafts if draft.wants_more]
        most, num_forwards = max(self._chunk_tokens, len(active)), 0
        while sum(len(draft.unread) for draft in active) > most:
            self._read_chunk(active)
            num_forwards += 1
        return num_forwards

    def _read_chunk(self, drafts: Sequence[_Draft]) -> None:
        """One forward without logits; every row keeps a token to read."""
        budget, parts = self._chunk_tokens, []
        for draft in drafts:
            num_tokens = min(len(draft.unread) - 1, budget)
            if num_tokens > 0:
                parts.append((draft, num_tokens))
                budget -= num_tokens
        self._model.forward([draft.slice(num_tokens, 0) for draft, num_tokens in parts])
        for draft, num_tokens in parts:
            draft.mark_read(num_tokens)

    def _step(self, active: Sequence[_Draft]) -> None:
        """One forward over all rows still drafting, then one draw for each."""
        sizes = [len(draft.unread) for draft in active]
        pairs = list(zip(active, sizes, strict=True))
        logits = self._model.forward([draft.slice(size, 1) for draft, size in pairs])
        logits = logits[:, : self._vocab_size]  # [rows, min(draft, target vocab)]
        # NaN and +inf show in the maximum; a single -inf is a token the draft rules out.
        finite = torch.isfinite(logits.amax(dim=-1)).tolist()
        logits = self._widen(logits)
        for (draft, size), line, is_finite in zip(pairs, logits, finite, strict=True):
            draft.mark_read(size)
            if is_finite:
                self._kv.share_prefix(draft.kv, draft.row.tokens)
                draft.draw(line)
            else:
                draft.failure = "draft logits are not finite"
                self._kv.evict(draft.row.row_id)

    def _widen(self, logits: torch.Tensor) -> torch.Tensor:
        """[rows, v] to [rows, vocab]: tokens that the draft does not know are impossible to it."""
        missing = self._vocab_size - logits.shape[-1]
        return torch.nn.functional.pad(logits, (0, missing), value=-math.inf)
