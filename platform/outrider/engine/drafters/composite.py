"""Two drafters: the first where it has something good enough, else the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outrider.engine.drafters import (
    Drafted,
    Drafter,
    DraftRow,
    FeatureReader,
    Offer,
    Proposal,
    Read,
    SafeDrafter,
)

ENOUGH = 1.0  # tokens: what is worth as much needs no comparison


class CompositeDrafter:
    """Takes the first's offer where its level reaches `min_level` and a token is expected of it,
    else what is worth more.

    Offers keep the name of the drafter that made them. For n-gram as the first, the level is the
    length of the match. Both must be safe, so that a failure of one leaves the other's rows alone.
    """

    name = "composite"

    def __init__(self, first: SafeDrafter, second: SafeDrafter, *, min_level: int) -> None:
        self._first = first
        self._second = second
        self._min_level = min_level
        self._readers = _readers(first, second)
        self._sources: dict[int, SafeDrafter] = {}  # row id -> who made the last offer

    def take_failures(self) -> list[str]:
        return self._first.take_failures() + self._second.take_failures()

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self._readers[0].feature_layers if self._readers else ()

    def read(self, reads: Sequence[Read]) -> None:
        for reader in self._readers:
            reader.read(reads)

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        """Ask the first for every row, and the second for those that it has nothing good for."""
        offers = self._first.offer(rows, limits)
        self._sources = {row.row_id: self._first for row in rows}
        pairs = enumerate(zip(rows, offers, strict=True))
        asked = [i for i, (row, offer) in pairs if not self._is_good(row, offer)]
        asked = self._promising(rows, limits, asked, offers)
        for i, offer in self._better(rows, limits, asked, offers):
            offers[i] = offer
            self._sources[rows[i].row_id] = self._second
        return offers

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        """Send each row to the drafter whose offer it had; order is kept, steps are added."""
        proposals = [Proposal([], failure="asked for a draft that was not offered") for _ in rows]
        num_steps = 0
        for drafter in (self._first, self._second):
            mine = [i for i, row in enumerate(rows) if self._sources.get(row.row_id) is drafter]
            if not mine:
                continue
            drafted = drafter.propose([rows[i] for i in mine], [lengths[i] for i in mine])
            num_steps += drafted.num_steps
            for i, proposal in zip(mine, drafted.proposals, strict=True):
                proposals[i] = proposal
        return Drafted(proposals, num_steps)

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self._sources.pop(row_id, None)
        self._first.release(row_id, tokens)
        self._second.release(row_id, tokens)

    def _promising(
        self,
        rows: Sequence[DraftRow],
        limits: Sequence[int],
        asked: Sequence[int],
        offers: Sequence[Offer],
    ) -> list[int]:
        """Those without an offer, or for whom the second is worth more even if it may not look:
        a look has its price, and one that a match beats on average is not to be made."""
        poor = [i for i in asked if offers[i].levels]
        if not poor:
            return list(asked)
        unseen = [replace(row, may_look=False) for row in rows]
        beaten = {i for i, _ in self._better(unseen, limits, poor, offers)}
        return [i for i in asked if not offers[i].levels or i in beaten]

    def _better(
        self,
        rows: Sequence[DraftRow],
        limits: Sequence[int],
        asked: Sequence[int],
        offers: Sequence[Offer],
    ) -> list[tuple[int, Offer]]:
        """The second's offers that are worth as much as the first's, or more."""
        if not asked:
            return []
        seconds = self._second.offer([rows[i] for i in asked], [limits[i] for i in asked])
        pairs = [pair for pair in zip(asked, seconds, strict=True) if pair[1].levels]
        return [(i, offer) for i, offer in pairs if _as_good(rows[i], offer, offers[i])]

    def _is_good(self, row: DraftRow, offer: Offer) -> bool:
        is_long = bool(offer.levels) and offer.levels[0] >= self._min_level
        return is_long and row.worth(offer) >= ENOUGH


def _as_good(row: DraftRow, offer: Offer, other: Offer) -> bool:
    return not other.levels or row.worth(offer) >= row.worth(other)


def _readers(*drafters: Drafter) -> list[FeatureReader]:
    """Those that read features. ValueError where they read other layers: a model gives one set."""
    readers = [drafter for drafter in drafters if isinstance(drafter, FeatureReader)]
    readers = [reader for reader in readers if reader.feature_layers]
    if len({reader.feature_layers for reader in readers}) > 1:
        raise ValueError("drafters that read other layers of the target can't be one")
    return readers
