"""Prompt lookup: what followed the last time the row's end was seen.

After Saxena 2023 ("Prompt Lookup Decoding") and Yang et al. 2023 ("Inference with Reference",
LLMA), with the match measured beyond the n-gram that found it: acceptance is learnt per length.

A row that rewrites a passage follows a trail through its own tokens. Where it puts in a word of its
own the match is lost for a few tokens; the trail tells where to read on, and which of many short
matches is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.config.schema import NgramSettings
from outrider.core import UserError
from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Offer, Proposal
from outrider.engine.drafters.corpus import Corpus
from outrider.engine.drafters.suffix_index import LENGTH_CAP, Match, SuffixIndex

_FIRST_CAPACITY = 256  # tokens an index has room for at least
_SURE_MATCH = 2  # tokens; a match this long is followed rather than the trail
_RESUMES = 3  # offers along the trail without a match before it is no longer believed
_TRAIL_AGE = 12  # offers without a match after which the trail is lost
_LEVELS_PER_AGE = 4  # a resumed draft is less sure the longer the trail has gone without a match


@dataclass(frozen=True, slots=True)
class _Trail:
    """The row, when it held `num_tokens` tokens, was reading its own text at `end`."""

    num_tokens: int
    end: int
    age: int = 0  # offers since a match confirmed it

    def at(self, num_tokens: int) -> _Trail:
        """Where it leads once the row holds `num_tokens`: token for token, as far as we know."""
        return _Trail(num_tokens, self.end + num_tokens - self.num_tokens, self.age + 1)


@dataclass(slots=True)
class _History:
    """The index over one row's own tokens, and the trail the row follows through it."""

    index: SuffixIndex
    num_prompt: int
    trail: _Trail | None = None


@dataclass(frozen=True, slots=True)
class _Finding:
    """What was looked up for a row when it held `num_tokens` tokens."""

    name: str
    match_length: int
    draft: list[int]
    num_tokens: int

    @property
    def offer(self) -> Offer:
        """If the draft is right up to position i, then i more tokens match."""
        levels = range(self.match_length, self.match_length + len(self.draft))
        return Offer(self.name, tuple(min(level, LENGTH_CAP) for level in levels))


class NgramDrafter:
    """Looks a row's end up in its own tokens, then in a corpus of other rows' outputs.

    Offers are named by where they come from, so that acceptance is learnt apart: "ngram", "corpus",
    "near" (a short match close to the trail), "resume" (no match: the trail's next tokens).

    Tokens of a row may only be added; rounds may be skipped. A row that was never offered a draft
    is not learnt by the corpus: where its output begins is not known.
    """

    name = "ngram"

    def __init__(self, settings: NgramSettings, corpus: Corpus | None) -> None:
        if not 1 <= settings.min_match <= settings.max_match <= LENGTH_CAP:
            raise UserError(
                f"draft.ngram: min_match={settings.min_match}, max_match={settings.max_match}:"
                f" need 1 <= min_match <= max_match <= {LENGTH_CAP}"
            )
        self._settings = settings
        self._corpus = corpus
        self._histories: dict[int, _History] = {}
        self._findings: dict[int, _Finding] = {}

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        """Look every row up. Cost: O(new tokens * max_match) per row, and the look-up."""
        self._findings = {}
        return [self._offer_one(row, limit) for row, limit in zip(rows, limits, strict=True)]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        """The beginning of what was found. One-hot: q is None."""
        pairs = zip(rows, lengths, strict=True)
        return Drafted([self._propose_one(row, length) for row, length in pairs])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self._findings.pop(row_id, None)
        history = self._histories.pop(row_id, None)
        if history is not None and self._corpus is not None:
            self._corpus.learn(tokens, history.num_prompt)

    def _offer_one(self, row: DraftRow, limit: int) -> Offer:
        if limit < 1:
            return NO_OFFER  # the index catches up when it is needed
        finding = self._look_up(self._catch_up(row), row.tokens, limit)
        if finding is None:
            return NO_OFFER
        self._findings[row.row_id] = finding
        return finding.offer

    def _look_up(self, history: _History, tokens: Sequence[int], limit: int) -> _Finding | None:
        index, num_tokens = history.index, len(tokens)
        trail = history.trail.at(num_tokens) if history.trail is not None else None
        if trail is not None and (trail.age > _TRAIL_AGE or trail.end >= num_tokens):
            trail = None
        history.trail = trail
        own = index.find(index.text, None if trail is None else trail.end)
        other = self._corpus.find(tokens) if self._corpus is not None else None
        if other is not None and (own is None or other.length > own.length):
            return _Finding("corpus", other.length, other.read(limit), num_tokens)
        if own is not None and (own.is_near or own.length >= _SURE_MATCH):
            history.trail = _Trail(num_tokens, own.end)
            name = "near" if own.is_near else "ngram"
            return _Finding(name, own.length, own.copy(limit), num_tokens)
        if trail is not None and trail.age <= _RESUMES:
            draft = Match(0, trail.end, index).copy(limit)
            return _Finding("resume", _LEVELS_PER_AGE * trail.age, draft, num_tokens)
        if own is not None:
            return _Finding("ngram", own.length, own.copy(limit), num_tokens)
        return None

    def _propose_one(self, row: DraftRow, length: int) -> Proposal:
        finding = self._findings.get(row.row_id)
        if finding is None or finding.num_tokens != len(row.tokens):
            return Proposal([], failure="asked for a draft that was not offered")
        return Proposal(finding.draft[:length])

    def _catch_up(self, row: DraftRow) -> _History:
        """Index what the row has gained since it was last seen."""
        history = self._histories.get(row.row_id)
        if history is None or len(row.tokens) > history.index.capacity:
            # Doubling keeps the cost of re-indexing below that of indexing once.
            trail = None if history is None else history.trail
            index = self._index_for(len(row.tokens))
            history = _History(index, len(row.request.prompt_ids), trail)
            self._histories[row.row_id] = history
        history.index.extend(row.tokens[len(history.index) :])
        return history

    def _index_for(self, num_tokens: int) -> SuffixIndex:
        return SuffixIndex(
            max(2 * num_tokens, _FIRST_CAPACITY),
            min_match=self._settings.min_match,
            max_match=self._settings.max_match,
        )
