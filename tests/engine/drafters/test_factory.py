"""Every kind of drafter opens by name, safe to use."""

import pytest
import torch

from outrider.config.schema import DrafterKind, NgramSettings
from outrider.core import Request, UserError
from outrider.engine.drafters import NO_OFFER, DraftRow, FeatureReader, Read
from outrider.engine.drafters.factory import open_drafter
from outrider.engine.drafters.head import HeadDrafter
from outrider.engine.head import CompiledHead
from outrider.testing import ManualClock, ScriptedModel, toy_head

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
        ("head", "head", "head"),
        ("composite over a head", "ngram", "head"),
    ],
)
def test_each_kind_drafts_as_its_name_says(kind, repeated, fresh):
    name, _, over = kind.partition(" ")
    head = head_drafter() if over or name == "head" else None
    drafter = open_kind(DrafterKind(name), model=draft_model(), head=head)
    assert drafter.name == name
    rows = [row([1, 2, 3, 4, 1, 2, 3], 0), row([1, 2, 3], 1)]
    tell(drafter, rows)
    offers = drafter.offer(rows, [2, 2])
    assert [offer.name for offer in offers] == [repeated, fresh]
    asked = [one for one, offer in zip(rows, offers, strict=True) if offer.levels]
    drafted = drafter.propose(asked, [2] * len(asked))
    assert all(len(p.tokens) == 2 and p.failure is None for p in drafted.proposals)
    for one in rows:
        drafter.release(one.row_id, one.tokens)
    assert drafter.take_failures() == []


def head_drafter():
    head = toy_head(vocab_size=VOCAB, hidden_size=8, scale=0.1)
    return HeadDrafter(CompiledHead(head, torch.zeros(VOCAB, 8)), vocab_size=VOCAB)


def tell(drafter, rows):
    """Of the features of everything but each row's last token, where any are wanted."""
    if isinstance(drafter, FeatureReader) and drafter.feature_layers:
        tokens = [one.tokens[:-1] for one in rows]
        reads = [
            Read(one.row_id, 0, read, torch.ones(len(read), 16))
            for one, read in zip(rows, tokens, strict=True)
        ]
        drafter.read(reads)


def test_a_kind_that_needs_a_head_says_which_key_is_missing():
    with pytest.raises(UserError, match=r"draft\.head\.source"):
        open_kind(DrafterKind.HEAD)


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
