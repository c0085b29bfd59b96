"""The model drafter's KV is right whatever happened to the row since it last drafted."""

import math
import random

import pytest
import torch

from outrider.core import Request
from outrider.engine.drafters import NO_OFFER, DraftRow
from outrider.engine.drafters.model import ModelDrafter
from outrider.testing import ScriptedModel

VOCAB = 11


def follower(prefix):
    """The token a toy model wants next: a function of every token before it."""
    code = 0
    for token in prefix:
        code = (code * 7 + token + 1) % 1009
    return code % VOCAB


def wants(token, vocab_size=VOCAB):
    return [5.0 if candidate == token else 0.0 for candidate in range(vocab_size)]


class StrictModel(ScriptedModel):
    """Refuses what a real runtime could not run: rows without tokens or room for them."""

    def forward(self, rows):
        for part in rows:
            end = part.past_length + len(part.tokens)
            assert 0 <= part.num_logits <= len(part.tokens) >= 1
            assert end <= min(self.shape.context_length, len(part.blocks) * self.shape.block_size)
        return super().forward(rows)


def model(logits=lambda prefix: wants(follower(prefix)), vocab_size=VOCAB, **shape):
    return StrictModel(logits, vocab_size=vocab_size, **shape)


def argmax(logits, drafted):
    return int(logits.argmax()), None


def row(tokens, row_id=0, num_prompt=3, sampler=argmax):
    prompt = tuple(tokens[:num_prompt])
    return DraftRow(row_id, Request(request_id=str(row_id), prompt_ids=prompt), tokens, sampler)


def propose(drafter, tokens, length, row_id=0, **more):
    (proposal,) = drafter.propose([row(tokens, row_id, **more)], [length]).proposals
    return proposal


def grown(tokens, count):
    """`tokens` and what the toy model emits behind them."""
    out = list(tokens)
    for _ in range(count):
        out.append(follower(out))
    return out


def expected(tokens, length):
    return grown(tokens, length)[len(tokens) :]


def test_it_drafts_what_its_model_wants():
    proposal = propose(ModelDrafter(model(), vocab_size=VOCAB), [1, 2, 3], 5)
    assert proposal.tokens == expected([1, 2, 3], 5)
    assert proposal.q is None
    assert proposal.failure is None


def test_the_first_round_after_a_pause_accepts_all():
    """Case E14: draft = target; k 3, then 20 rounds of k 0, then k 3."""
    drafter = ModelDrafter(model(), vocab_size=VOCAB)
    tokens = [1, 2, 3]
    assert propose(drafter, tokens, 3).tokens == expected(tokens, 3)
    tokens = grown(tokens, 4)  # three accepted and one more
    tokens = grown(tokens, 20)
    proposal = propose(drafter, tokens, 3)
    assert proposal.tokens == expected(tokens, 3)
    assert proposal.num_caught_up == 20


def test_a_pause_after_a_rejection_is_read_in_full():
    drafter = ModelDrafter(model(), vocab_size=VOCAB)
    tokens = [1, 2, 3]
    drafted = propose(drafter, tokens, 5).tokens
    tokens = grown([*tokens, drafted[0], (drafted[1] + 1) % VOCAB], 6)
    proposal = propose(drafter, tokens, 3)
    assert proposal.tokens == expected(tokens, 3)
    assert proposal.num_caught_up == 6


@pytest.mark.parametrize("num_kept", [0, 1, 2, 3, 4])
def test_a_round_that_kept_less_than_was_drafted_is_no_trouble(num_kept):
    """None of it, where the round was lost; or a part, all of it as drafted."""
    drafter = ModelDrafter(model(), vocab_size=VOCAB)
    tokens = [1, 2, 3]
    tokens = tokens + propose(drafter, tokens, 4).tokens[:num_kept]
    assert propose(drafter, tokens, 4).tokens == expected(tokens, 4)


@pytest.mark.parametrize("num_accepted", [0, 1, 2, 3])
def test_a_rejection_rolls_back_to_the_accepted_prefix(num_accepted):
    """The target puts another token where the draft was rejected."""
    drafter = ModelDrafter(model(), vocab_size=VOCAB)
    tokens = [1, 2, 3]
    drafted = propose(drafter, tokens, 3).tokens
    wanted = follower(tokens + drafted[:num_accepted])
    tokens = tokens + drafted[:num_accepted] + [(wanted + 1) % VOCAB]
    proposal = propose(drafter, tokens, 4)
    assert proposal.tokens == expected(tokens, 4)
    assert proposal.num_caught_up == 0


def test_any_history_of_rows_and_lengths_gives_the_drafts_of_a_fresh_drafter():
    """Rows come, pause, are rejected and evicted in any order; a small pool makes it hard."""
    draw = random.Random(1)
    drafter = ModelDrafter(model(num_blocks=24), vocab_size=VOCAB, chunk_tokens=5)
    rows = {i: [draw.randrange(VOCAB) for _ in range(draw.randrange(1, 12))] for i in range(6)}
    num_full = 0
    for _ in range(150):
        chosen = draw.sample(sorted(rows), draw.randrange(1, 5))
        lengths = [draw.randrange(1, 6) for _ in chosen]
        asked = [row(rows[i], i, num_prompt=1) for i in chosen]
        drafted = drafter.propose(asked, lengths)
        for i, length, proposal in zip(chosen, lengths, drafted.proposals, strict=True):
            num_full += proposal.failure is not None
            right = [] if proposal.failure else expected(rows[i], length)
            assert proposal.tokens == right
            kept = draw.randrange(len(right) + 1)
            rows[i] = rows[i] + right[:kept] + [draw.randrange(VOCAB)]
            rows[i] = grown(rows[i], draw.choice([0, 0, 0, 3]))
            if len(rows[i]) > 40:
                drafter.release(i, rows[i])
                rows[i] = [draw.randrange(VOCAB)]
        drafter.check_integrity()
    assert 0 < num_full < 50
    for i in rows:
        drafter.release(i, rows[i])
    assert drafter.num_free_blocks == 24


def test_step_j_is_one_forward_over_the_rows_still_drafting():
    target = model()
    drafter = ModelDrafter(target, vocab_size=VOCAB)
    rows = [row([1, 2, 3], 0), row([4, 5], 1), row([6], 2)]
    drafted = drafter.propose(rows, [1, 4, 2])
    assert [p.tokens for p in drafted.proposals] == [
        expected([1, 2, 3], 1),
        expected([4, 5], 4),
        expected([6], 2),
    ]
    assert drafted.num_steps == target.num_forwards == 4
    assert target.num_tokens == 6 + 2 + 1 + 1


@pytest.mark.parametrize("lengths", [(30, 2), (2, 30)])
def test_a_long_prompt_is_read_in_chunks(lengths):
    target = model()
    drafter = ModelDrafter(target, vocab_size=VOCAB, chunk_tokens=8)
    one, other = (grown([i], length - 1) for i, length in enumerate(lengths))
    drafted = drafter.propose([row(one, 0), row(other, 1)], [2, 2])
    assert [p.tokens for p in drafted.proposals] == [expected(one, 2), expected(other, 2)]
    assert drafted.num_steps == target.num_forwards
    assert target.num_tokens == 30 + 2 + 2


def test_a_prompt_is_not_late_but_what_came_before_the_first_draft_is():
    drafter = ModelDrafter(model(), vocab_size=VOCAB)
    assert propose(drafter, grown([1, 2, 3], 1), 2, row_id=0).num_caught_up == 0
    assert propose(drafter, grown([4, 5, 6], 9), 2, row_id=1).num_caught_up == 8


def test_rows_with_the_same_beginning_share_its_kv():
    target = model()
    drafter = ModelDrafter(target, vocab_size=VOCAB)
    prompt = grown([1], 19)
    propose(drafter, prompt, 1, row_id=0)
    proposal = propose(drafter, [*prompt, 4], 2, row_id=1)
    assert proposal.tokens == expected([*prompt, 4], 2)
    assert target.num_tokens == 20 + (21 - 20) + 1


def test_an_idle_row_makes_room_and_is_read_again():
    drafter = ModelDrafter(model(num_blocks=6), vocab_size=VOCAB)
    first, second = grown([1], 14), grown([2], 14)
    assert propose(drafter, first, 2, row_id=0).failure is None
    assert propose(drafter, second, 2, row_id=1).failure is None
    proposal = propose(drafter, first, 2, row_id=0)
    assert proposal.tokens == expected(first, 2)
    assert proposal.num_caught_up > 0
    drafter.check_integrity()


def test_the_row_idle_for_longest_makes_room_first():
    target = model(num_blocks=9)
    drafter = ModelDrafter(target, vocab_size=VOCAB)
    prompts = [grown([i], 10) for i in range(4)]
    for i in (0, 1, 2, 0, 3):  # three rows fill the pool, the first is used again
        assert propose(drafter, prompts[i], 1, row_id=i).failure is None
    before = target.num_tokens
    propose(drafter, prompts[0], 1, row_id=0)
    assert target.num_tokens == before + 1


def test_a_full_pool_fails_the_row_that_does_not_fit_and_no_other():
    drafter = ModelDrafter(model(num_blocks=6), vocab_size=VOCAB)
    first, second = grown([1], 14), grown([2], 14)
    drafted = drafter.propose([row(first, 0), row(second, 1)], [2, 2])
    assert drafted.proposals[0].tokens == expected(first, 2)
    assert drafted.proposals[1].tokens == []
    assert drafted.proposals[1].failure == "draft KV is full"
    assert propose(drafter, second, 2, row_id=1).tokens == expected(second, 2)


def test_a_row_that_does_not_fit_does_not_keep_the_others_out():
    """Two rows that grew to more than half of the pool each: one goes on."""
    drafter = ModelDrafter(model(num_blocks=6), vocab_size=VOCAB)
    first, second = grown([1], 10), grown([2], 10)
    drafter.propose([row(first, 0), row(second, 1)], [2, 2])
    first, second = grown(first, 3), grown(second, 3)
    drafted = drafter.propose([row(first, 0), row(second, 1)], [2, 2])
    assert sorted(len(proposal.tokens) for proposal in drafted.proposals) == [0, 2]


def test_an_offer_is_bounded_by_the_draft_s_context():
    """The last token drafted is never read: k tokens need k - 1 places."""
    drafter = ModelDrafter(model(context_length=8), vocab_size=VOCAB)
    rows = [row([1] * 5, 0), row([1] * 8, 1), row([1] * 9, 2)]
    offers = drafter.offer(rows, [9, 9, 9])
    assert [len(offer.levels) for offer in offers] == [4, 1, 0]
    assert offers[2] == NO_OFFER
    assert propose(drafter, [1] * 5, 4).tokens == expected([1] * 5, 4)


def test_an_offer_tells_positions_as_levels_and_one_forward_each():
    (offer,) = ModelDrafter(model(), vocab_size=VOCAB).offer([row([1, 2])], [10])
    assert offer.name == "model"
    assert offer.levels == (0, 1, 2, 3, 4, 5, 6, 7, 7, 7)
    assert offer.num_steps == 1


def test_broken_logits_end_the_block_of_their_row_only():
    """What was drawn before stands: dropping drawn tokens would bend the distribution (E05)."""
    bad = expected([1, 2, 3], 2)

    def logits(prefix):
        is_bad = prefix[:5] == (1, 2, 3, *bad)
        return [math.nan] * VOCAB if is_bad else wants(follower(prefix))

    drafter = ModelDrafter(model(logits), vocab_size=VOCAB)
    drafted = drafter.propose([row([1, 2, 3], 0), row([4, 5, 6], 1)], [4, 4])
    assert drafted.proposals[0].tokens == bad
    assert drafted.proposals[0].failure == "draft logits are not finite"
    assert drafted.proposals[1].tokens == expected([4, 5, 6], 4)
    assert drafted.proposals[1].failure is None
    drafter.check_integrity()


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_one_broken_logit_is_enough(broken):
    drafter = ModelDrafter(model(lambda prefix: [0.0] * 4 + [broken] + [0.0] * 6), vocab_size=VOCAB)
    proposal = propose(drafter, [1, 2, 3], 2)
    assert proposal.tokens == []
    assert proposal.failure == "draft logits are not finite"


@pytest.mark.parametrize("draft_vocab", [8, 11, 16])
def test_samplers_see_the_target_s_width(draft_vocab):
    """Padded vocabularies: wider is cut, narrower is filled with impossible tokens."""
    seen = []

    def sampler(logits, drafted):
        seen.append(logits.clone())
        return 2, torch.softmax(logits, dim=-1)

    draft = model(lambda prefix: [1.0] * draft_vocab, vocab_size=draft_vocab)
    proposal = propose(ModelDrafter(draft, vocab_size=VOCAB), [1], 2, num_prompt=1, sampler=sampler)
    known = min(draft_vocab, VOCAB)
    assert seen[0].tolist() == [1.0] * known + [-math.inf] * (VOCAB - known)
    assert proposal.q.shape == (2, VOCAB)
    assert proposal.q[1].tolist() == pytest.approx([1 / known] * known + [0.0] * (VOCAB - known))


def test_a_token_that_the_draft_rules_out_is_no_fault():
    drafter = ModelDrafter(model(lambda prefix: [-math.inf, 1.0] + [0.0] * 9), vocab_size=VOCAB)
    assert propose(drafter, [1, 2, 3], 2).tokens == [1, 1]


def test_a_padded_token_that_is_broken_does_not_matter():
    draft = model(lambda prefix: [*wants(follower(prefix)), math.nan], vocab_size=VOCAB + 1)
    proposal = propose(ModelDrafter(draft, vocab_size=VOCAB), [1, 2, 3], 3)
    assert proposal.tokens == expected([1, 2, 3], 3)


def test_q_is_what_each_token_was_drawn_from():
    """A sampler that had only one choice at a position stands as one-hot among the others."""

    def sampler(logits, drafted):
        q = torch.full((VOCAB,), 1 / VOCAB, dtype=torch.float64)
        return len(drafted), (None if len(drafted) == 1 else q)

    proposal = propose(ModelDrafter(model(), vocab_size=VOCAB), [1, 2, 3], 3, sampler=sampler)
    assert proposal.tokens == [0, 1, 2]
    assert proposal.q.dtype == torch.float64
    assert proposal.q[0].tolist() == pytest.approx([1 / VOCAB] * VOCAB)
    assert proposal.q[1].tolist() == [0.0, 1.0] + [0.0] * 9


def test_a_sampler_hears_what_was_drafted_before_it():
    heard = []

    def sampler(logits, drafted):
        heard.append(list(drafted))
        return int(logits.argmax()), None

    tokens = propose(ModelDrafter(model(), vocab_size=VOCAB), [1], 3, sampler=sampler).tokens
    assert heard == [[], tokens[:1], tokens[:2]]


def test_a_forward_that_fails_leaves_the_kv_right_for_the_next_round():
    trouble = [False]

    def logits(prefix):
        if trouble[0] and len(prefix) == 5:
            raise RuntimeError("out of memory")
        return wants(follower(prefix))

    drafter = ModelDrafter(model(logits), vocab_size=VOCAB)
    trouble[0] = True
    with pytest.raises(RuntimeError, match="out of memory"):
        propose(drafter, [1, 2, 3], 4)
    trouble[0] = False
    tokens = [1, 2, 3, (follower([1, 2, 3]) + 1) % VOCAB]
    assert propose(drafter, tokens, 4).tokens == expected(tokens, 4)
