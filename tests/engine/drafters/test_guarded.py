"""Law 9: whatever a drafter does, the round goes on and the breaker hears of it."""

import math

import pytest
import torch

from outrider.core import Request
from outrider.engine.drafters import NO_OFFER, Drafted, DraftRow, Offer, Proposal, Read
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.testing import ManualClock

VOCAB = 4


class Puppet:
    """Answers with what it is given; raises it where it is an exception; takes its time."""

    name = "puppet"

    def __init__(self, offers=None, drafted=None, released=None, clock=None, seconds=0.0):
        self.offers, self.drafted, self.released = offers, drafted, released
        self.clock, self.seconds = clock, seconds

    def answer(self, what):
        if self.clock is not None:
            self.clock.advance(self.seconds)
        if isinstance(what, Exception):
            raise what
        return what

    def offer(self, rows, limits):
        return self.answer(self.offers)

    def propose(self, rows, lengths):
        return self.answer(self.drafted)

    def release(self, row_id, tokens):
        self.answer(self.released)


def guard(puppet, timeout_s=None):
    clock = puppet.clock or ManualClock()
    return GuardedDrafter(puppet, vocab_size=VOCAB, clock=clock, timeout_s=timeout_s)


def rows(count):
    request = Request(request_id="r", prompt_ids=(1,))
    return [DraftRow(i, request, [1], lambda logits, drafted: (0, None)) for i in range(count)]


def proposals(*blocks, num_steps=2):
    return Puppet(drafted=Drafted(list(blocks), num_steps))


FLAT = torch.full((2, VOCAB), 0.25, dtype=torch.float64)


def q_with(value, at=(1, 2)):
    q = FLAT.clone()
    q[at] = value
    return q


def test_what_is_right_passes_unchanged():
    drafted = Drafted([Proposal([3, 0], FLAT, num_caught_up=5), Proposal([])], 7)
    offers = [Offer("puppet", (0, 1), 1), NO_OFFER]
    guarded = guard(Puppet(offers=offers, drafted=drafted))
    assert guarded.offer(rows(2), [2, 2]) == offers
    assert guarded.propose(rows(2), [2, 2]) == drafted
    assert guarded.take_failures() == []
    assert guarded.name == "puppet"


def test_an_exception_in_propose_fails_its_rows_and_is_not_raised():
    drafted = guard(Puppet(drafted=RuntimeError("boom"))).propose(rows(2), [1, 1])
    for proposal in drafted.proposals:
        assert proposal.tokens == []
        assert proposal.failure == "puppet: propose failed: RuntimeError: boom"


@pytest.mark.parametrize("answer", [Drafted([Proposal([1])]), Drafted([Proposal([1])] * 3), None])
def test_proposals_that_can_t_be_told_apart_fail_all_rows(answer):
    drafted = guard(Puppet(drafted=answer)).propose(rows(2), [1, 1])
    assert [proposal.tokens for proposal in drafted.proposals] == [[], []]
    assert all(proposal.failure for proposal in drafted.proposals)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Proposal([1, 2, 3]), "3 tokens where 2"),
        (Proposal([1, VOCAB]), "token 4 is not in the vocabulary"),
        (Proposal([-1]), "token -1 is not"),
        (Proposal([1.0]), "token 1.0 is not"),
        (Proposal([1], FLAT), "q of shape"),
        (Proposal([1, 2], FLAT[:, :3]), "q of shape"),
        (Proposal([1, 2], q_with(math.nan)), "not a distribution"),
        (Proposal([1, 2], q_with(math.inf)), "not a distribution"),
        (Proposal([1, 2], q_with(0.5)), "not a distribution"),
        (Proposal([1, 2], torch.tensor([[0.5, 0.5, 0.5, -0.5]] * 2)), "not a distribution"),
        (Proposal([1, 2], torch.tensor([[0.5, 0.5, 0, 0]] * 2)), "rules out a token"),
        (Proposal(None), "TypeError"),
        (None, "AttributeError"),
    ],
)
def test_a_bad_block_fails_its_own_row_only(bad, reason):
    good = Proposal([1, 2], FLAT)
    drafted = guard(proposals(good, bad, good)).propose(rows(3), [2, 2, 2])
    assert drafted.proposals[0] is drafted.proposals[2] is good
    assert drafted.proposals[1].tokens == []
    assert reason in drafted.proposals[1].failure
    assert drafted.num_steps == 2


def test_a_failure_told_by_the_drafter_itself_passes():
    told = Proposal([1], failure="draft logits are not finite")
    assert guard(proposals(told)).propose(rows(1), [3]).proposals == [told]


@pytest.mark.parametrize("answer", [ValueError("boom"), [NO_OFFER], None])
def test_a_failing_offer_is_no_offer_and_is_heard_of_once(answer):
    guarded = guard(Puppet(offers=answer))
    assert guarded.offer(rows(2), [1, 1]) == [NO_OFFER, NO_OFFER]
    (failure,) = guarded.take_failures()
    assert failure.startswith("puppet: offer failed: ")
    assert guarded.take_failures() == []


def test_a_bad_offer_spoils_its_own_row_only():
    good = Offer("puppet", (1, 2))
    guarded = guard(Puppet(offers=[good, Offer("puppet", (-1,)), good]))
    assert guarded.offer(rows(3), [2, 2, 2]) == [good, NO_OFFER, good]
    assert len(guarded.take_failures()) == 1


def test_an_offer_is_cut_at_the_limit():
    guarded = guard(Puppet(offers=[Offer("puppet", (1, 2, 3), 1)]))
    assert guarded.offer(rows(1), [2]) == [Offer("puppet", (1, 2), 1)]


def test_a_failing_release_is_heard_of():
    guarded = guard(Puppet(released=KeyError("row")))
    guarded.release(0, [1])
    assert "release failed: KeyError" in guarded.take_failures()[0]


def test_a_slow_draft_is_kept_and_heard_of():
    clock = ManualClock()
    drafted = Drafted([Proposal([1])], 1)
    guarded = guard(Puppet(drafted=drafted, clock=clock, seconds=2.0), timeout_s=0.5)
    assert guarded.propose(rows(1), [1]) == drafted
    assert guarded.take_failures() == ["puppet: propose took 2.000 s, 0.500 s allowed"]


def test_failures_are_heard_through_a_second_guard():
    inner = guard(Puppet(offers=ValueError("boom")))
    outer = GuardedDrafter(inner, vocab_size=VOCAB, clock=ManualClock())
    outer.offer(rows(1), [1])
    assert len(outer.take_failures()) == 1


def test_an_interrupt_is_not_a_failure_of_the_drafter():
    class Interrupted(Puppet):
        def offer(self, rows, limits):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard(Interrupted()).offer(rows(1), [1])


def test_a_failing_read_is_heard_of_once():
    class Reader(Puppet):
        feature_layers = (1,)

        def read(self, reads):
            self.answer(reads[0])

    told, boom = Read(0, 3, [1], torch.zeros(1, 2)), ValueError("boom")
    guarded = guard(Reader())
    assert guarded.feature_layers == (1,)
    guarded.read([told])
    assert guarded.take_failures() == []
    guarded.read([boom])
    assert guarded.take_failures() == ["puppet: read failed: ValueError: boom"]
    assert guarded.take_failures() == []


def test_a_drafter_that_reads_nothing_is_told_nothing():
    guarded = guard(Puppet())
    assert guarded.feature_layers == ()
    guarded.read([Read(0, 3, [1], torch.zeros(1, 2))])
    assert guarded.take_failures() == []
