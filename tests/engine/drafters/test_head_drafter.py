"""The head drafter's KV and features are right whatever happened to the row since it last drafted.

The target here is a function: the feature of a token depends on every token up to it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from outrider.core import Request
from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Proposal, Read
from outrider.engine.drafters.head import LOOK_STEPS, HeadDrafter
from outrider.engine.drafters.head_block import BLIND, NUM_BUCKETS, bucket_of
from outrider.engine.head import CompiledHead
from outrider.testing import toy_head

torch.set_num_threads(1)  # what is as small as this only waits for others
VOCAB, HIDDEN = 12, 8
HEAD = toy_head(vocab_size=VOCAB, hidden_size=HIDDEN, seed=3)
SAID = HEAD.d2t.tolist()
EMBEDDING = torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(1)).double()


def features(tokens: Sequence[int], begin: int) -> torch.Tensor:
    """Of positions begin, ... behind whatever stands before."""
    code, codes = 1, []
    for token in tokens:
        code = (code * 31 + token + 1) % 1_000_003
        codes.append(code)
    return (torch.tensor(codes[begin:])[:, None] * torch.arange(1, 2 * HIDDEN + 1)).double().sin()


def argmax(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, None]:
    return int(logits.argmax()), None


def open_drafter(**more: Any) -> HeadDrafter:
    return HeadDrafter(CompiledHead(HEAD, EMBEDDING), vocab_size=VOCAB, **more)


@dataclass
class Told:
    """A row whose target tells the drafter what it computed, as the engine does."""

    drafter: HeadDrafter
    tokens: list[int]
    row_id: int = 0
    sampler: Any = argmax
    num_computed: int = 0
    num_prompt: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_prompt = len(self.tokens)

    @property
    def row(self) -> DraftRow:
        prompt = tuple(self.tokens[: self.num_prompt])
        request = Request(request_id=str(self.row_id), prompt_ids=prompt)
        return DraftRow(self.row_id, request, self.tokens, self.sampler)

    def read(self, upto: int, drafted: Sequence[int] = ()) -> None:
        """The target computes up to `upto` committed tokens, and what was drafted behind."""
        fed, begin = [*self.tokens[:upto], *drafted], self.num_computed
        told = features(fed, begin)
        self.drafter.read([Read(self.row_id, begin, fed[begin:], told)])
        told.fill_(math.nan)  # the target overwrites it
        self.num_computed = upto

    def prefill(self, first: int = 7, chunk: int = 100) -> Told:
        while self.num_computed < len(self.tokens):
            self.read(min(self.num_computed + chunk, len(self.tokens)))
        self.tokens.append(first)
        return self

    def round(self, drafted: Sequence[int], num_accepted: int, token: int) -> None:
        """The target scores, accepts some and says `token` behind them."""
        self.read(len(self.tokens), drafted)
        self.tokens += [*drafted[:num_accepted], token]
        self.num_computed = len(self.tokens) - 1

    def propose(self, length: int) -> Proposal:
        return self.drafted(length).proposals[0]

    def scores(self, length: int) -> torch.Tensor:
        """[length, VOCAB] what the head says at each position of a block."""
        seen: list[torch.Tensor] = []

        def look(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, None]:
            seen.append(logits.clone())
            return argmax(logits, drafted)

        self.sampler, before = look, self.sampler
        self.propose(length)
        self.sampler = before
        return torch.stack(seen)

    def drafted(self, length: int) -> Drafted:
        assert self.drafter.offer([self.row], [length])[0].levels
        drafted = self.drafter.propose([self.row], [length])
        self.drafter.check_integrity()
        return drafted


def fresh(tokens: Sequence[int], length: int, num_prompt: int = 1) -> list[int]:
    """What a drafter says that was told of everything at once."""
    told = Told(open_drafter(), list(tokens))
    told.num_prompt = num_prompt
    told.read(len(tokens) - 1)
    return told.propose(length).tokens


def other(token: int) -> int:
    return (token + 1) % VOCAB


PROMPT = [1, 2, 3, 4, 5]


def test_a_draft_is_what_the_head_says_step_by_step() -> None:
    """The paper's recurrence, written out: features first, then the layer's own outputs."""
    told = Told(open_drafter(), list(PROMPT)).prefill()
    head = CompiledHead(HEAD, EMBEDDING)
    kv = head.new_kv()
    said = head.read(features(PROMPT, 0), told.tokens[1:], range(5), [(kv, 5)])
    wanted: list[int] = []
    scores = []
    for position in range(5, 9):
        scores.append(said.logits[0])
        wanted.append(SAID[int(scores[-1].argmax())])
        said = head.step(said.states, wanted[-1:], [position], [(kv, 1)])
    proposal = told.propose(4)
    assert proposal.tokens == wanted
    assert torch.allclose(told.scores(4)[:, SAID], torch.stack(scores))
    assert (proposal.q, proposal.failure, proposal.num_caught_up) == (None, None, 0)


@pytest.mark.parametrize("num_argmax", [0, 1, 3])
def test_where_the_best_is_wanted_nothing_is_drawn(num_argmax: int) -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    row, drawn = told.row, []

    def sampler(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, None]:
        drawn.append(len(drafted))
        return argmax(logits, drafted)

    row.sampler, row.takes_argmax = sampler, lambda num_drafted: num_drafted < num_argmax
    told.drafter.offer([row], [3])
    assert told.drafter.propose([row], [3]).proposals[0].tokens == told.propose(3).tokens
    assert drawn == list(range(num_argmax, 3))


@pytest.mark.parametrize("num_accepted", [0, 1, 2, 3])
def test_a_rejection_leaves_no_trace(num_accepted: int) -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    drafted = told.propose(3).tokens
    wrong = other(drafted[num_accepted]) if num_accepted < 3 else 0
    told.round(drafted, num_accepted, wrong)
    proposal = told.propose(4)
    assert proposal.tokens == fresh(told.tokens, 4)
    assert proposal.num_caught_up == 0


def test_rounds_without_a_draft_are_caught_up_and_counted() -> None:
    """Law 10: k 3, then 20 rounds of k 0, then k 3."""
    told = Told(open_drafter(), list(PROMPT)).prefill()
    told.round(told.propose(3).tokens, 2, 0)
    for token in range(20):
        told.round([], 0, token % VOCAB)
    proposal = told.propose(3)
    assert proposal.tokens == fresh(told.tokens, 3)
    # The pause's last round is told just now; what the first one scored was there before.
    assert proposal.num_caught_up == 3 + 19


def test_a_prompt_is_not_late() -> None:
    told = Told(open_drafter(), [i % VOCAB for i in range(30)]).prefill(chunk=7)
    assert told.propose(2).num_caught_up == 0


def test_a_late_look_is_counted_once_and_with_the_draft_that_it_led_to() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    for token in range(3):
        told.round([], 0, token)
    told.drafter.offer([told.row], [2])
    told.round([], 0, 3)
    assert told.propose(2).num_caught_up == 3
    told.round([], 0, 4)
    assert told.propose(2).num_caught_up == 0


def test_preemption_tells_what_is_known_already() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    told.round(told.propose(3).tokens, 1, 0)
    told.num_computed = 0
    for upto in (2, len(told.tokens)):
        told.read(upto)
    told.tokens.append(3)
    assert told.propose(4).tokens == fresh(told.tokens, 4)


def test_what_the_prefix_cache_had_is_a_hole() -> None:
    """The head sees nothing before it, and drafts all the same."""
    told = Told(open_drafter(), [1, 2, 3, 4, 5, 6, 7, 8], num_computed=4).prefill()
    seen = told.drafter.memory(0)
    proposal = told.propose(2)
    assert len(proposal.tokens) == 2
    assert (seen.num_seen, seen.num_confirmed) == (8, 4)


def test_features_that_wait_for_too_long_are_lost_and_no_more() -> None:
    told = Told(open_drafter(most_unread=6), [i % VOCAB for i in range(9)]).prefill(chunk=4)
    memory = told.drafter.memory(0)
    assert memory.num_unread == 6
    for token in range(4):
        told.round([1, 2], 0, token)
        assert memory.num_unread <= 6
    assert told.propose(2).tokens
    assert memory.num_confirmed == memory.num_seen - 9 == 4  # two had been drafts


def test_any_history_gives_the_drafts_of_a_fresh_drafter() -> None:
    """Rounds of any length, pauses, preemption, chunks and looks in vain, over six rows."""
    draw = random.Random(1)
    drafter = open_drafter()

    def new(row_id: int) -> Told:
        prompt = [draw.randrange(VOCAB) for _ in range(draw.randrange(1, 9))]
        return Told(drafter, prompt, row_id).prefill(chunk=draw.randrange(1, 9))

    rows = {i: new(i) for i in range(6)}
    next_id = 6
    for _ in range(80):
        chosen = draw.sample(sorted(rows), draw.randrange(1, 5))
        asked = [replace(rows[i].row, may_look=draw.random() < 0.7) for i in chosen]
        if draw.random() < 0.8:
            offers = drafter.offer(asked, [5] * len(asked))
            assert all(offer.levels for offer in offers)
        drafting = [i for i in chosen if draw.random() < 0.7]
        lengths = [draw.randrange(1, 6) for _ in drafting]
        drafts = drafter.propose([rows[i].row for i in drafting], lengths)
        drafter.check_integrity()
        said = dict(zip(drafting, drafts.proposals, strict=True))
        for i, length in zip(drafting, lengths, strict=True):
            wanted = fresh(rows[i].tokens, length)
            assert said[i].tokens == wanted
        for i in chosen:
            told = rows[i]
            drafted = said[i].tokens if i in said else []
            kept = draw.randrange(len(drafted) + 1)
            token = draw.randrange(VOCAB)
            if kept < len(drafted) and token == drafted[kept]:
                token = other(token)
            told.round(drafted, kept, token)
            if draw.random() < 0.1:
                told.num_computed = 0
                told.prefill(draw.randrange(VOCAB), chunk=draw.randrange(1, 9))
            if len(told.tokens) > 40:
                drafter.release(i, told.tokens)
                del rows[i]
                rows[next_id] = new(next_id)
                next_id += 1
        drafter.check_integrity()
    assert next_id > 6
    for i in rows:
        drafter.release(i, rows[i].tokens)
    assert drafter.num_rows == 0


def test_a_long_prompt_is_read_in_chunks() -> None:
    tokens = [i * 5 % VOCAB for i in range(300)]
    told = Told(open_drafter(), tokens).prefill(chunk=64)
    (offer,) = told.drafter.offer([told.row], [2])
    drafted = told.drafter.propose([told.row], [2])
    assert (offer.num_run, drafted.num_steps) == (3 * LOOK_STEPS, 1)
    assert drafted.proposals[0].tokens == fresh(told.tokens, 2)


def test_step_j_is_one_forward_over_the_rows_still_drafting() -> None:
    drafter = open_drafter()
    rows = [Told(drafter, [i, 2, 3], i).prefill() for i in range(3)]
    asked = [told.row for told in rows]
    offers = drafter.offer(asked, [4, 4, 4])
    drafted = drafter.propose(asked, [1, 3, 2])
    assert [len(p.tokens) for p in drafted.proposals] == [1, 3, 2]
    assert [offer.num_run for offer in offers] == [LOOK_STEPS] * 3  # it sees the first position
    assert drafted.num_steps == 2
    assert drafted.proposals[1].tokens == fresh(rows[1].tokens, 3)


def test_a_look_that_is_made_for_the_draft_is_its_step() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    assert told.drafter.propose([told.row], [1]).num_steps == LOOK_STEPS


# -- offers ---------------------------------------------------------------------------------------


def level(told: Told) -> tuple[int, int]:
    """Position and bucket of the first level that is offered."""
    (offer,) = told.drafter.offer([told.row], [1])
    return divmod(offer.levels[0], NUM_BUCKETS)


def test_levels_tell_the_position_and_how_sure_the_head_is() -> None:
    """Law 4: both depend on the prefix alone."""
    seen = set()
    for token in range(VOCAB):
        told = Told(open_drafter(), [token, 2, 3]).prefill()
        (offer,) = told.drafter.offer([told.row], [10])
        logits = told.drafter.memory(0).look.logits  # type: ignore[union-attr]
        bucket = bucket_of(float(logits.softmax(-1).max()))
        positions, buckets = zip(*(divmod(each, NUM_BUCKETS) for each in offer.levels), strict=True)
        assert positions == (0, 1, 2, 3, 4, 5, 6, 7, 7, 7)
        assert set(buckets) == {bucket}
        assert (offer.name, offer.num_steps) == ("head", 1)
        seen.add(bucket)
    assert len(seen) > 2


def test_the_buckets_are_in_order_and_apart() -> None:
    assert [bucket_of(top) for top in (0.0, 0.2, 0.5, 0.7, 0.8, 0.95, 1.0)] == [0, 1, 2, 3, 4, 5, 5]
    assert BLIND == 6


def test_a_row_that_may_not_be_looked_at_is_offered_blind_and_drafts_the_same() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    row = told.row
    row.may_look = False
    (offer,) = told.drafter.offer([row], [2])
    assert [level % NUM_BUCKETS for level in offer.levels] == [BLIND, BLIND]
    assert (offer.num_run, offer.num_seen, offer.num_first) == (0, 0, LOOK_STEPS - 1)
    drafted = told.drafter.propose([row], [2])
    assert drafted.proposals[0].tokens == fresh(told.tokens, 2)
    assert drafted.num_steps == LOOK_STEPS + 1


def test_a_row_that_was_not_told_of_has_no_offer() -> None:
    drafter = open_drafter()
    told = Told(drafter, list(PROMPT)).prefill()
    stranger = DraftRow(9, told.row.request, [*PROMPT, 7], argmax)
    assert drafter.offer([stranger, told.row], [3, 0]) == [NO_OFFER, NO_OFFER]
    (proposal,) = drafter.propose([stranger], [2]).proposals
    assert proposal.failure == "the target's features of this row are not known"
    told.tokens.append(3)  # as if a forward had not been told
    assert drafter.offer([told.row], [3]) == [NO_OFFER]


def test_a_round_that_nobody_told_leaves_a_row_without_an_offer_until_the_next() -> None:
    """What was drafted before it may look as long as what was committed since."""
    told = Told(open_drafter(), list(PROMPT)).prefill()
    drafted = told.propose(3).tokens
    told.round(drafted, 0, other(drafted[0]))
    told.tokens.append(3)
    told.num_computed += 1
    assert told.drafter.offer([told.row], [3]) == [NO_OFFER]
    told.round([], 0, 4)
    assert told.propose(3).tokens


# -- draws ----------------------------------------------------------------------------------------


def test_samplers_see_the_target_s_width_and_nothing_outside_the_head_s_words() -> None:
    seen = []

    def sampler(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, torch.Tensor]:
        q = torch.softmax(logits.double(), dim=-1)
        seen.append((q, list(drafted)))
        return SAID[len(drafted)], q

    proposal = Told(open_drafter(), list(PROMPT), sampler=sampler).prefill().propose(2)
    assert [drafted for _, drafted in seen] == [[], SAID[:1]]
    assert proposal.tokens == SAID[:2]
    assert proposal.q is not None
    assert (proposal.q.shape, proposal.q.dtype) == ((2, VOCAB), torch.float64)
    for line, (q, _) in zip(proposal.q, seen, strict=True):
        assert torch.equal(line, q)
        assert set(line.nonzero().flatten().tolist()) <= set(SAID)
        assert float(line.sum()) == pytest.approx(1.0)


def test_a_constraint_that_allows_no_word_of_the_head_can_still_be_drawn_from() -> None:
    allowed = [token for token in range(VOCAB) if token not in SAID]

    def sampler(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, torch.Tensor]:
        masked = torch.full((VOCAB,), -math.inf, dtype=torch.float64)
        masked[allowed] = logits[allowed].double()
        q = masked.softmax(-1)
        return allowed[0], q

    proposal = Told(open_drafter(), list(PROMPT), sampler=sampler).prefill().propose(1)
    assert proposal.q is not None
    assert proposal.q[0, allowed].tolist() == pytest.approx([1 / len(allowed)] * len(allowed))


def test_a_hopeless_position_is_not_drawn_whatever_token_would_be() -> None:
    """Law 4: the block ends by q, before the draw; what was drawn before stands."""
    flat = toy_head(vocab_size=2000, hidden_size=HIDDEN, scale=0.01)
    drafter = HeadDrafter(CompiledHead(flat, torch.zeros(2000, HIDDEN)), vocab_size=2000)
    told = Told(drafter, list(PROMPT)).prefill()
    assert len(told.propose(5).tokens) == 1


def test_broken_logits_end_the_block_of_their_row_only() -> None:
    bad, broken = fresh([*PROMPT, 7], 1)[0], EMBEDDING.clone()
    broken[bad] = math.nan
    drafter = HeadDrafter(CompiledHead(HEAD, broken), vocab_size=VOCAB)
    one = Told(drafter, list(PROMPT)).prefill(first=7)
    others = (Told(drafter, [*PROMPT, i], i).prefill() for i in range(1, VOCAB))
    two = next(told for told in others if bad not in fresh(told.tokens, 4)[:3])
    wanted = fresh(two.tokens, 4)
    asked = [one.row, two.row]
    drafter.offer(asked, [4, 4])
    first, second = drafter.propose(asked, [4, 4]).proposals
    assert (first.tokens, first.failure) == ([bad], "draft logits are not finite")
    assert (second.tokens, second.failure) == (wanted, None)
    drafter.check_integrity()


def test_broken_features_fail_and_are_forgotten() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    told.round([], 0, 2)
    broken = torch.full((1, 2 * HIDDEN), math.nan)
    told.drafter.read([Read(0, len(told.tokens) - 2, told.tokens[-2:-1], broken)])
    proposal = told.propose(3)
    assert (proposal.tokens, proposal.failure) == ([], "draft logits are not finite")
    told.round([], 0, 3)
    assert len(told.propose(3).tokens) > 0
    assert told.drafter.memory(0).num_confirmed == 1


def test_a_forward_that_fails_leaves_the_state_right_for_the_next_round() -> None:
    told = Told(open_drafter(), list(PROMPT)).prefill()
    told.round(told.propose(3).tokens, 3, 0)
    calls = [0]

    def broken(logits: torch.Tensor, drafted: Sequence[int]) -> tuple[int, None]:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError("out of memory")
        return argmax(logits, drafted)

    told.sampler = broken
    with pytest.raises(RuntimeError, match="out of memory"):
        told.propose(4)
    told.sampler = argmax
    again = Told(open_drafter(), told.tokens)
    again.read(len(told.tokens) - 1)
    assert torch.allclose(told.scores(3), again.scores(3))
    told.round([], 0, 3)
    assert told.propose(4).tokens == fresh(told.tokens, 4)


def test_a_head_for_more_tokens_than_the_target_has_is_refused() -> None:
    with pytest.raises(ValueError, match="a head for 12 tokens, the target 11"):
        HeadDrafter(CompiledHead(HEAD, EMBEDDING), vocab_size=11)
