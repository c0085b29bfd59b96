"""A draft head as drafter (EAGLE-3, arXiv 2503.01840; EAGLE, arXiv 2401.15077, section 4.1).

Position i of a row reads the target's features of token i and the embedding of token i + 1, and
tells token i + 2: a draft begins with position L - 2 of L committed tokens. Behind it the layer's
own outputs stand in for the features that nobody knows yet; they are forgotten with the round.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Offer, Proposal, Read
from outrider.engine.drafters.block_q import stacked_q
from outrider.engine.drafters.head_block import BLIND, HeadBlock, bucket_of, levels
from outrider.engine.drafters.head_memory import Chunk, HeadMemory, Look
from outrider.engine.head import CompiledHead, HeadKV, Told

MOST_UNREAD = 1024  # tokens whose features wait for a row's next draft; older ones are lost
LOOK_STEPS = 2  # a look costs about as much as so many steps: it reads features, and more tokens
CHUNK_TOKENS = 128  # most tokens of one row that one forward reads

UNKNOWN = -1e30
"""Score of a token outside the trimmed vocabulary: its probability is 0 to the last bit, unless a
constraint lets nothing else follow."""


class HeadDrafter:
    """Drafts with `head`; step j is one forward over all rows that are still drafting.

    `vocab_size` is the target's, the width that samplers see. A row is looked at when it is
    offered, because its first position says how sure the head is. Where it may not be, its offers
    are blind, and cost nothing.
    """

    name = "head"

    def __init__(
        self,
        head: CompiledHead,
        *,
        vocab_size: int,
        most_unread: int = MOST_UNREAD,
    ) -> None:
        if head.config.vocab_size > vocab_size:
            raise ValueError(f"a head for {head.config.vocab_size} tokens, the target {vocab_size}")
        self._head = head
        self._vocab_size = vocab_size
        self._most_unread = most_unread
        self._memories: dict[int, HeadMemory] = {}

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._head.config.feature_layers

    @torch.inference_mode()
    def read(self, reads: Sequence[Read]) -> None:
        for read in reads:
            chunk = Chunk(read.position, read.tokens, read.features)
            self.memory(read.row_id).hold(chunk, self._most_unread)

    @torch.inference_mode()
    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        """Looks at those who may draft. Rows whose features nobody told have no offer."""
        able = [
            row
            for row, limit in zip(rows, limits, strict=True)
            if limit > 0 and self.memory(row.row_id).is_ready(row.tokens)
        ]
        num_run = self._look([row for row in able if row.may_look])
        ids = {row.row_id for row in able}
        pairs = zip(rows, limits, strict=True)
        return [
            self._offer_one(row, limit, num_run) if row.row_id in ids else NO_OFFER
            for row, limit in pairs
        ]

    @torch.inference_mode()
    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        """Blocks of at most `lengths`: shorter where the head has lost hope."""
        num_steps = self._look(rows)
        drafts = [self._begin(*pair) for pair in zip(rows, lengths, strict=True)]
        while drawing := [draft for draft in drafts if draft.wants_more]:
            for draft in drawing:
                self._draw(draft)
            going = [draft for draft in drawing if draft.wants_more]
            if going:
                self._step(going)
                num_steps += 1
        return Drafted([self._proposal(draft) for draft in drafts], num_steps)

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self._memories.pop(row_id, None)

    def check_integrity(self) -> None:
        """Raise AssertionError unless every row's KV and features agree."""
        for memory in self._memories.values():
            memory.check_integrity()

    @property
    def num_rows(self) -> int:
        """Rows that it remembers anything of."""
        return len(self._memories)

    def memory(self, row_id: int) -> HeadMemory:
        memory = self._memories.get(row_id)
        if memory is None:
            memory = self._memories[row_id] = HeadMemory(self._head.new_kv())
        return memory

    def _offer_one(self, row: DraftRow, limit: int, num_run: int) -> Offer:
        look = self._seen(row)
        if look is None:
            steps = {"num_steps": 1, "num_run": num_run, "num_first": LOOK_STEPS - 1}
            return Offer(self.name, levels(BLIND, limit), **steps)
        steps = {"num_steps": 1, "num_run": num_run, "num_seen": 1}
        return Offer(self.name, levels(bucket_of(look.top), limit), **steps)

    def _seen(self, row: DraftRow) -> Look | None:
        look = self.memory(row.row_id).look
        return look if look is not None and look.num_tokens == len(row.tokens) else None

    def _look(self, rows: Sequence[DraftRow]) -> int:
        """Catch up with the target and see the first position; return what it cost, in steps."""
        behind = [
            row
            for row in rows
            if self._seen(row) is None and self.memory(row.row_id).is_ready(row.tokens)
        ]
        if not behind:
            return 0
        num_forwards = 1
        for row in behind:
            memory = self.memory(row.row_id)
            memory.settle(row.tokens, len(row.request.prompt_ids))
            while memory.num_unread > CHUNK_TOKENS:
                self._read([row])
                num_forwards += 1
        self._keep_looks(behind, self._read(behind))
        return num_forwards * LOOK_STEPS

    def _read(self, rows: Sequence[DraftRow]) -> Told:
        """Read up to `CHUNK_TOKENS` of each row."""
        parts = [(row, part) for row in rows for part in self._next_parts(row)]
        features = torch.cat([part.features for _, part in parts])
        tokens = [
            token for row, part in parts for token in row.tokens[part.position + 1 : part.end + 1]
        ]
        positions = [i for _, part in parts for i in range(part.position, part.end)]
        counts = [sum(len(part.tokens) for owner, part in parts if owner is row) for row in rows]
        told = self._head.read(features, tokens, positions, self._kvs(rows, counts))
        for row, part in parts:
            self.memory(row.row_id).mark_read(part)
        return told

    def _next_parts(self, row: DraftRow) -> list[Chunk]:
        parts, room = [], CHUNK_TOKENS
        for chunk in self.memory(row.row_id).chunks:
            part = chunk.part(chunk.position, min(chunk.end, chunk.position + room))
            room -= len(part.tokens)
            parts.append(part)
            if room == 0:
                break
        return parts

    def _keep_looks(self, rows: Sequence[DraftRow], told: Told) -> None:
        for row, state, logits, top in zip(rows, *told, strict=True):
            self.memory(row.row_id).look = Look(len(row.tokens), logits, state, top)

    def _begin(self, row: DraftRow, length: int) -> HeadBlock:
        memory, look = self.memory(row.row_id), self._seen(row)
        draft = HeadBlock(row, length, memory)
        if look is None:
            draft.failure = "the target's features of this row are not known"
            return draft
        memory.kv.cut(memory.num_confirmed)  # where a block before it broke off
        draft.see(look.logits, look.state, look.top)
        return draft

    def _draw(self, draft: HeadBlock) -> None:
        """The best token, or what the engine draws from target-wide logits [vocab]."""
        assert draft.logits is not None
        if draft.row.takes_argmax(len(draft.tokens)):
            token, q = int(self._head.d2t[draft.logits.argmax()]), None
        else:
            token, q = draft.row.sampler(self._wide(draft.logits), draft.tokens)
        draft.tokens.append(token)
        draft.qs.append(q)

    def _wide(self, logits: torch.Tensor) -> torch.Tensor:
        wide = logits.new_full((self._vocab_size,), UNKNOWN)
        wide[self._head.d2t] = logits
        return wide

    def _step(self, drafts: Sequence[HeadBlock]) -> None:
        """Read the token just drawn with the layer's own output in the features' place."""
        states = torch.stack([draft.state for draft in drafts if draft.state is not None])
        tokens = [draft.tokens[-1] for draft in drafts]
        positions = [len(draft.row.tokens) - 2 + len(draft.tokens) for draft in drafts]
        rows = self._kvs([draft.row for draft in drafts], [1] * len(drafts))
        told = self._head.step(states, tokens, positions, rows)
        for draft, state, logits, top in zip(drafts, *told, strict=True):
            draft.see(logits, state, top)

    def _kvs(self, rows: Sequence[DraftRow], counts: Sequence[int]) -> list[tuple[HeadKV, int]]:
        return [
            (self.memory(row.row_id).kv, count) for row, count in zip(rows, counts, strict=True)
        ]

    def _proposal(self, draft: HeadBlock) -> Proposal:
        num_late, draft.memory.num_late = draft.memory.num_late, 0
        q = stacked_q(draft.tokens, draft.qs, self._vocab_size)
        return Proposal(draft.tokens, q, draft.failure, num_late)
