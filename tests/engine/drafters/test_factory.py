"""Every kind of drafter opens by name, safe to use."""

import pytest

from outrider.config.schema import DrafterKind, NgramSettings
from outrider.core import Request, UserError
from outrider.engine.drafters import NO_OFFER, DraftRow
from outrider.engine.drafters.factory import open_drafter
from outrider.testing import ManualClock, ScriptedModel

VOCAB = 6


def open_kind(kind, **more):
    return open_drafter(kind, vocab_size=VOCAB, clock=ManualClock(), **more)


def draft_model():
    return ScriptedModel(lambda prefix: [0.0] * 5 + [1.0], vocab_size=VOCAB)


def row(tokens, row_id=0):
    request = Request(request_id=str(row_id), prompt_ids=tuple(tokens))
    return DraftRow(row_id, request, tokens, lambda logits, drafted: (int(logits.argmax()), None))


@pytest.mark.parametrize(
    ("kind", "repeated", "fresh"),
    [
        ("none", "none", "none"),
        ("ngram", "ngram", "none"),
        ("model", "model", "model"),
        ("composite", "ngram", "model"),
    ],
)
def test_each_kind_drafts_as_its_name_says(kind, repeated, fresh):
    drafter = open_kind(DrafterKind(kind), model=draft_model())
    assert drafter.name == kind
    rows = [row([1, 2, 3, 4, 1, 2, 3], 0), row([1, 2, 3], 1)]
    offers = drafter.offer(rows, [2, 2])
    assert [offer.name for offer in offers] == [repeated, fresh]
    asked = [one for one, offer in zip(rows, offers, strict=True) if offer.levels]
    drafted = drafter.propose(asked, [2] * len(asked))
    assert all(len(p.tokens) == 2 and p.failure is None for p in drafted.proposals)
    for one in rows:
        drafter.release(one.row_id, one.tokens)
    assert drafter.take_failures() == []


@pytest.mark.parametrize("kind", [DrafterKind.MODEL, DrafterKind.COMPOSITE])
def test_a_kind_that_needs_a_model_says_which_key_is_missing(kind):
    with pytest.raises(UserError, match=r"draft\.model"):
        open_kind(kind)


def test_an_unknown_kind_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"eagle.*none, ngram, model, head, composite"):
        open_kind("eagle")


def test_an_impossible_corpus_is_refused_by_name():
    with pytest.raises(UserError, match=r"draft\.ngram\.corpus_tokens=-1"):
        open_kind("ngram", ngram=NgramSettings(corpus_tokens=-1))


@pytest.mark.parametrize("more", [{"corpus": False}, {"corpus_tokens": 0}])
def test_the_corpus_can_be_left_out(more):
    drafter = open_kind("ngram", ngram=NgramSettings(**more))
    drafter.offer([row([1, 2], 0)], [3])
    drafter.release(0, [1, 2, 3, 4])
    assert drafter.offer([row([1, 2], 1)], [3]) == [NO_OFFER]


def test_the_none_drafter_proposes_nothing_without_a_failure():
    (proposal,) = open_kind("none").propose([row([1])], [3]).proposals
    assert proposal.tokens == []
    assert proposal.failure is None
