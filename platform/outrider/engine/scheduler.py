"""Who takes part in a round, with how many tokens: admission, chunked prefill, preemption."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from outrider.engine.kv_cache import BlockPool
from outrider.engine.row import Row


@dataclass(slots=True)
class Slot:
    """One row's part in a round: `num_tokens` committed tokens, then the drafted ones."""

    row: Row
    num_tokens: int

    @property
    def samples(self) -> bool:
        """True where the round reaches the row's last token, so that a new one is drawn."""
        return self.num_tokens == self.row.num_pending

    @property
    def decodes(self) -> bool:
        """True for a row with nothing but its last token to compute: it may draft."""
        return self.row.num_pending == 1


class Scheduler:
    """Continuous batching: first come, first served; the youngest row is preempted first."""

    def __init__(self, pool: BlockPool, *, max_rows: int, max_round_tokens: int) -> None:
        self._pool = pool
        self._max_rows = max_rows
        self._max_round_tokens = max_round_tokens
        self.waiting: deque[Row] = deque()
        self._waiting_tokens = 0
        self.running: list[Row] = []

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def queued_tokens(self) -> int:
        """Tokens of all rows that have no KV yet, were each to become as long as it may."""
        return self._waiting_tokens + sum(row.num_left for row in self.running)

    def add(self, row: Row) -> None:
        self.waiting.append(row)
        self._waiting_tokens += row.num_left

    def remove(self, row: Row) -> None:
        """Take an ended row out and free its blocks at once."""
        if row in self.running:
            self.running.remove(row)
        else:
            self.waiting.remove(row)
            self._waiting_tokens -= row.num_left
        self._pool.release(row.table)

    def schedule(self) -> list[Slot]:
        """Choose the rows of the next round and give them room for their committed tokens.

        Decoding rows come first, so that a long prompt never starves them; what is left of the
        round's tokens goes to prompts, in chunks.
        """
        slots: list[Slot] = []
        budget = self._max_round_tokens
        for row in sorted(self.running, key=lambda row: row.num_pending > 1):
            budget -= self._continue(row, budget, slots)
        self._admit(budget, slots)
        return slots

    def _continue(self, row: Row, budget: int, slots: list[Slot]) -> int:
        if row not in self.running:  # preempted for an older row in this very round
            return 0
        size = min(row.num_pending, budget)
        if size <= 0 or not self._make_room(row, row.num_computed + size, slots):
            return 0
        slots.append(Slot(row, size))
        return size

    def _make_room(self, row: Row, length: int, slots: list[Slot]) -> bool:
        while not self._pool.can_grow(row.table, length):
            victim = self.running[-1]
            self._preempt(victim, slots)
            if victim is row:
                return False
        self._pool.grow(row.table, length)
        return True

    def _preempt(self, row: Row, slots: list[Slot]) -> None:
        self.running.remove(row)
        slots[:] = [slot for slot in slots if slot.row is not row]
        self._pool.release(row.table)
        row.restart()
        self.waiting.appendleft(row)
        self._waiting_tokens += row.num_left

    def _admit(self, budget: int, slots: list[Slot]) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._max_rows:
            row = self.waiting[0]
            cached = self._pool.adopt_prefix(row.table, row.tokens)
            if not self._fits(row):
                self._pool.release(row.table)
                return
            self._waiting_tokens -= row.num_left
            row.num_computed = cached
            if row.counters.num_preemptions == 0:  # else its own tokens would be counted too
                row.counters.num_cached_tokens = cached
            size = min(row.num_pending, budget)
            self._pool.grow(row.table, row.num_computed + size)
            self.running.append(self.waiting.popleft())
            slots.append(Slot(row, size))
            budget -= size

    def _fits(self, row: Row) -> bool:
        """Room for all committed tokens: a row admitted with less would soon be preempted."""
        return self._pool.can_grow(row.table, len(row.tokens))
