"""N-gram where it has a match, else the model: each row goes to one of them, in its place."""

from dataclasses import replace

import pytest
import torch

from outrider.config.schema import NgramSettings
from outrider.core import Request
from outrider.engine.drafters import Drafted, DraftRow, Offer, Read
from outrider.engine.drafters.composite import CompositeDrafter
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.drafters.model import ModelDrafter
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.drafters.none import NoDrafter
from outrider.testing import ManualClock, ScriptedModel

VOCAB = 10
MODEL_TOKEN = 9


def row(tokens, row_id):
    request = Request(request_id=str(row_id), prompt_ids=tuple(tokens))
    return DraftRow(row_id, request, tokens, lambda logits, drafted: (int(logits.argmax()), None))


def guard(drafter):
    return GuardedDrafter(drafter, vocab_size=VOCAB, clock=ManualClock())


def stubborn(num_blocks=64):
    """A draft model that wants one token only."""
    logits = [float(token == MODEL_TOKEN) for token in range(VOCAB)]
    return ScriptedModel(lambda prefix: logits, vocab_size=VOCAB, num_blocks=num_blocks)


def ngram():
    return guard(NgramDrafter(NgramSettings(), None))


def composite(first=None, second=None, min_level=2):
    second = second or guard(ModelDrafter(stubborn(), vocab_size=VOCAB))
    return CompositeDrafter(first or ngram(), second, min_level=min_level)


ROWS = [row([1, 2, 3], 0), row([1, 2, 3, 1, 2], 1), row([4, 5, 4], 2)]


class Reader(NoDrafter):
    def __init__(self, layers):
        self.feature_layers = layers
        self.told = []

    def read(self, reads):
        self.told.append(reads)


class Broken:
    name = "broken"

    def offer(self, rows, limits):
        return [Offer("broken", (0,) * limit) for limit in limits]

    def propose(self, rows, lengths):
        raise RuntimeError("no draft today")

    def release(self, row_id, tokens):
        raise RuntimeError("nothing is let go")


def test_each_row_is_offered_what_suits_it_under_its_maker_s_name():
    offers = composite().offer(ROWS, [2, 3, 4])
    assert [offer.name for offer in offers] == ["model", "ngram", "model"]
    assert [len(offer.levels) for offer in offers] == [2, 3, 4]
    assert [offer.num_steps for offer in offers] == [1, 0, 1]


def test_each_proposal_comes_from_the_offer_s_maker_in_the_order_of_the_rows():
    drafter = composite()
    drafter.offer(ROWS, [2, 3, 4])
    drafted = drafter.propose(ROWS, [2, 3, 4])
    assert [proposal.tokens for proposal in drafted.proposals] == [[9, 9], [3, 1, 2], [9] * 4]
    assert drafted.num_steps == 4


def test_some_rows_may_be_left_out():
    drafter = composite()
    drafter.offer(ROWS, [2, 3, 4])
    drafted = drafter.propose(ROWS[1:2], [1])
    assert [proposal.tokens for proposal in drafted.proposals] == [[3]]
    assert drafted.num_steps == 0


def test_a_poor_match_is_better_than_nothing():
    drafter = composite(second=guard(NoDrafter()))
    offers = drafter.offer(ROWS, [2, 3, 4])
    assert [offer.name for offer in offers] == ["none", "ngram", "ngram"]
    assert drafter.propose(ROWS[2:], [1]).proposals[0].tokens == [5]


class Seer(NoDrafter):
    """Its offers are of level 5 where it may look, else of level 1; it notes whom it was shown."""

    def __init__(self):
        self.shown = []

    def offer(self, rows, limits):
        self.shown += [(row.row_id, row.may_look) for row in rows]
        return [
            Offer("seer", (5 if row.may_look else 1,) * limit)
            for row, limit in zip(rows, limits, strict=True)
        ]


def worth(**by_name):
    """What an offer is worth by its maker and, where a list is given, by its level."""

    def of(offer):
        told = by_name.get(offer.name, 1.0)
        return told[offer.levels[0]] if isinstance(told, list) else told

    return of


@pytest.mark.parametrize(
    ("seen", "name", "shown"),
    [
        ([0, 0.4, 0, 0, 0, 0.9], "ngram", [(2, False)]),  # not even looked at
        ([0, 0.6, 0, 0, 0, 0.1], "ngram", [(2, False), (2, True)]),  # the look says no
        ([0, 0.6, 0, 0, 0, 0.9], "seer", [(2, False), (2, True)]),
    ],
)
def test_where_the_first_has_little_whoever_is_worth_more_drafts(seen, name, shown):
    seer = Seer()
    poor = replace(ROWS[2], worth=worth(ngram=0.5, seer=seen))
    (offer,) = composite(second=guard(seer)).offer([poor], [3])
    assert offer.name == name
    assert seer.shown == shown


def test_a_row_without_an_offer_is_looked_at_at_once():
    seer = Seer()
    nothing = replace(ROWS[0], worth=worth(seer=0.0))
    assert composite(second=guard(seer)).offer([nothing], [3])[0].name == "seer"
    assert seer.shown == [(0, True)]


def test_a_long_match_that_has_not_held_is_compared():
    """As a trail that is followed where it has been lost."""
    seer = Seer()
    lost = replace(ROWS[1], worth=worth(ngram=0.0, seer=0.1))
    assert composite(second=guard(seer)).offer([lost], [3])[0].name == "seer"


def test_a_long_match_is_taken_whatever_the_other_is_worth():
    seer = Seer()
    sure = replace(ROWS[1], worth=worth(seer=9.0))
    assert composite(second=guard(seer)).offer([sure], [3])[0].name == "ngram"
    assert seer.shown == []


def test_a_row_that_was_not_offered_now_gets_nothing():
    drafter = composite()
    drafter.offer(ROWS, [2, 3, 4])
    drafter.offer(ROWS[:1], [2])
    drafted = drafter.propose(ROWS[:2], [2, 2])
    assert drafted.proposals[0].tokens == [9, 9]
    assert drafted.proposals[1].tokens == []
    assert drafted.proposals[1].failure is not None


def test_a_failing_model_leaves_the_look_ups_alone():
    drafter = composite(second=guard(Broken()))
    drafter.offer(ROWS, [2, 3, 4])
    proposals = drafter.propose(ROWS, [2, 3, 4]).proposals
    assert [proposal.tokens for proposal in proposals] == [[], [3, 1, 2], []]
    assert "no draft today" in proposals[0].failure
    assert proposals[1].failure is None


def test_failures_of_both_are_heard_of():
    drafter = composite(first=guard(Broken()), second=guard(Broken()))
    drafter.release(0, [1])
    assert len(drafter.take_failures()) == 2
    assert drafter.take_failures() == []


def test_an_empty_round_is_fine():
    assert composite().offer([], []) == []
    assert composite().propose([], []) == Drafted([], 0)


def test_what_the_target_computed_goes_to_whoever_reads():
    reader = Reader((1, 2))
    read = [Read(7, 0, [3], torch.zeros(1, 4))]
    for both in (composite(ngram(), guard(reader)), composite(guard(reader), ngram())):
        assert both.feature_layers == (1, 2)
        both.read(read)
    assert reader.told == [read, read]
    assert composite(ngram(), ngram()).feature_layers == ()
    with pytest.raises(ValueError, match="other layers"):
        composite(guard(Reader((1, 2))), guard(Reader((3,))))
