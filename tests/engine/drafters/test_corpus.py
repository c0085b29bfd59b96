"""The shared corpus: bounded, counted, and never across documents."""

import random

from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.drafters.corpus import Corpus


def corpus(max_tokens=200):
    return Corpus(max_tokens, min_match=1, max_match=4)


def read(kept, tokens, limit=4):
    match = kept.find(tokens)
    return None if match is None else (match.length, match.read(limit))


def test_what_followed_in_a_finished_output_is_found():
    kept = corpus()
    kept.learn([1, 2, 3, 4, 5, 6], 0)
    assert read(kept, [9, 2, 3]) == (2, [4, 5, 6])


def test_a_continuation_ends_with_its_document():
    kept = corpus()
    kept.learn([1, 2, 3], 0)
    kept.learn([7, 8, 9], 0)
    assert read(kept, [1, 2]) == (2, [3])
    assert read(kept, [3]) is None
    assert read(kept, [3, 7]) == (1, [8, 9])


def test_the_most_frequent_continuation_is_offered():
    kept = corpus()
    for follower in (5, 6, 5, 5, 7):
        kept.learn([1, 2, follower, follower], 0)
    assert read(kept, [1, 2], 1) == (2, [5])


def test_a_prompt_tells_when_its_output_applies_and_is_not_offered_itself():
    kept = corpus()
    kept.learn([1, 2, 3, 4, 5], 3)
    assert read(kept, [1]) is None
    assert read(kept, [1, 2, 3]) == (3, [4, 5])


def test_the_longer_match_wins_whichever_generation_has_it():
    kept = corpus(max_tokens=20)
    kept.learn([1, 2, 3, 4, 5, 6], 0)
    kept.learn([8, 3, 7, 7, 7], 0)
    assert read(kept, [2, 3], 1) == (2, [4])
    assert read(kept, [8, 3], 1) == (2, [7])
    assert read(kept, [0, 3], 1) == (1, [7])


def test_the_oldest_output_is_dropped():
    kept = corpus(max_tokens=20)
    kept.learn([1, 2, 3, 4, 5, 6], 0)
    kept.learn([11, 12, 13, 14, 15], 0)
    assert read(kept, [1, 2]) == (2, [3, 4, 5, 6])
    kept.learn([21, 22, 23, 24, 25], 0)
    assert read(kept, [1, 2]) is None
    assert read(kept, [21, 22], 1) == (2, [23])


def test_a_document_longer_than_the_corpus_keeps_its_end():
    kept = corpus(max_tokens=20)
    kept.learn(list(range(100)), 0)
    assert len(kept) <= 20
    assert read(kept, [97, 98]) == (2, [99])
    assert read(kept, [10, 11]) is None


def test_a_corpus_of_no_tokens_learns_nothing():
    kept = corpus(max_tokens=0)
    kept.learn([1, 2, 3], 0)
    assert len(kept) == 0
    assert read(kept, [1, 2]) is None


def test_an_empty_output_is_no_document():
    kept = corpus()
    kept.learn([1, 2, 3], 3)
    assert len(kept) == 0


@given(
    documents=st.lists(st.lists(st.integers(0, 4), max_size=30), max_size=20),
    start=st.integers(0, 30),
    max_tokens=st.integers(0, 80),
)
def test_it_never_outgrows_its_bound(documents, start, max_tokens):
    kept = corpus(max_tokens)
    for tokens in documents:
        kept.learn(tokens, start)
        assert len(kept) <= max_tokens


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=20), min_size=1, max_size=6))
def test_every_match_is_a_real_one(documents):
    kept = corpus(1000)
    for tokens in documents:
        kept.learn(tokens, 0)
    end = documents[0][:3]
    match = kept.find(end)
    places = [(d, e) for d in documents for e in range(1, len(d)) if d[e - 1] == end[-1]]
    assert (match is not None) == bool(places)
    if match is not None:
        seen = end[len(end) - match.length :] + match.read(30)
        assert any(seen == d[e - match.length :] for d, e in places)


def test_matches_are_true_in_a_crowded_index():
    """Slots are shared by many n-grams once an index is full: none is taken for another."""
    draw = random.Random(5)
    kept = corpus(4000)
    text = [draw.randrange(50_000) for _ in range(1900)]
    kept.learn(text, 0)
    kept.learn([draw.randrange(50_000) for _ in range(1900)], 0)
    for end in range(10, 1900, 7):
        assert read(kept, text[end - 5 : end], 3)[1] == text[end : end + 3]
