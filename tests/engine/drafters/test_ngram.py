"""Prompt lookup: the longest repeated suffix decides, however the tokens arrived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.config.schema import NgramSettings
from outrider.core import Request, UserError
from outrider.engine.drafters import NO_OFFER, DraftRow
from outrider.engine.drafters.corpus import Corpus
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.drafters.suffix_index import SuffixIndex

SETTINGS = NgramSettings(max_match=4, min_match=1)


def never(logits, drafted):
    raise AssertionError("look-ups draw nothing")


def row(tokens, row_id=0, num_prompt=None):
    prompt = tuple(tokens[: len(tokens) if num_prompt is None else num_prompt])
    return DraftRow(row_id, Request(request_id=str(row_id), prompt_ids=prompt), tokens, never)


def draft(drafter, tokens, limit, row_id=0):
    """(name, levels, tokens) of what is drafted for a row with these tokens."""
    asked = [row(tokens, row_id)]
    (offer,) = drafter.offer(asked, [limit])
    if not offer.levels:
        return offer.name, offer.levels, []
    (proposal,) = drafter.propose(asked, [limit]).proposals
    assert proposal.q is None
    assert proposal.failure is None
    return offer.name, offer.levels, proposal.tokens


def brute_force(tokens, limit, *, max_match, min_match):
    """(match length, draft): all n-grams compared with all places, no index."""
    length = len(tokens)
    for n in range(min(max_match, length - 1), min_match - 1, -1):
        ends = [e for e in range(n, length) if tokens[e - n : e] == tokens[length - n :]]
        if ends:
            break
    else:
        return 0, []

    def shared(end):
        same = 0
        while same < min(end, 32) and tokens[end - 1 - same] == tokens[length - 1 - same]:
            same += 1
        return same

    recent = ends[-8:]
    longest = max(map(shared, recent))
    best = [e for e in recent if shared(e) == longest]
    nexts = [tokens[e] for e in best]
    end = max(best, key=lambda e: (nexts.count(tokens[e]), e))
    text = list(tokens)
    for i in range(limit):
        text.append(text[end + i])
    return longest, text[length:]


@given(
    tokens=st.lists(st.integers(0, 3), max_size=80) | st.lists(st.integers(0, 1), min_size=40),
    limit=st.integers(1, 9),
    max_match=st.integers(1, 6),
    min_match=st.integers(1, 3),
)
def test_the_draft_is_what_a_brute_force_search_finds(tokens, limit, max_match, min_match):
    """A row seen for the first time follows no trail: the search alone decides."""
    max_match = max(max_match, min_match)
    drafter = NgramDrafter(NgramSettings(max_match=max_match, min_match=min_match), None)
    name, levels, drafted = draft(drafter, tokens, limit)
    length, expected = brute_force(tokens, limit, max_match=max_match, min_match=min_match)
    assert drafted == expected
    assert levels == tuple(min(length + i, 32) for i in range(len(expected)))
    assert name == ("ngram" if expected else "none")


@given(st.randoms(use_true_random=False), st.integers(1, 1000), st.integers(30, 200))
def test_an_index_that_grew_in_steps_finds_what_one_grown_at_once_does(draw, length, step):
    tokens = [draw.randrange(4) for _ in range(length)]
    stepwise, at_once = (SuffixIndex(length, min_match=1, max_match=4) for _ in range(2))
    for begin in range(0, length, step):
        stepwise.extend(tokens[begin : begin + step])
    at_once.extend(tokens)
    mine, theirs = stepwise.find(tokens), at_once.find(tokens)
    assert (mine and (mine.length, mine.end)) == (theirs and (theirs.length, theirs.end))


PASSAGE = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]


def test_a_row_that_swaps_a_word_reads_on_behind_it():
    """The row repeats a passage but says 99 for 13: no match, yet the trail goes on with 14."""
    drafter = NgramDrafter(SETTINGS, None)
    assert draft(drafter, [*PASSAGE, 0, 10, 11, 12], 3) == ("ngram", (3, 4, 5), [13, 14, 15])
    name, levels, drafted = draft(drafter, [*PASSAGE, 0, 10, 11, 12, 99], 3)
    assert (name, drafted) == ("resume", [14, 15, 16])
    assert levels == (4, 5, 6)
    name, _, drafted = draft(drafter, [*PASSAGE, 0, 10, 11, 12, 99, 14, 15, 16], 3)
    assert (name, drafted) == ("ngram", [17, 18, 19])


def test_of_many_short_matches_the_one_on_the_trail_is_meant():
    """Token 5 stands everywhere; behind the swapped word the row reads on where it was."""
    text = [5, 1, 5, 1, 5, 1, *PASSAGE[:3], 20, 5, 77, *[30, 31] * 30]
    drafter = NgramDrafter(SETTINGS, None)
    draft(drafter, [*text, 10, 11, 12], 3)
    name, _, drafted = draft(drafter, [*text, 10, 11, 12, 99, 5], 1)
    assert (name, drafted) == ("near", [77])
    assert draft(NgramDrafter(SETTINGS, None), [*text, 10, 11, 12, 99, 5], 1)[2] == [1]


def test_a_trail_without_a_match_is_given_up():
    drafter = NgramDrafter(SETTINGS, None)
    tokens = [*PASSAGE, *range(200, 230), 10, 11, 12]
    draft(drafter, tokens, 3)
    names = []
    for new in range(100, 106):
        tokens = [*tokens, new]
        names.append(draft(drafter, tokens, 3)[0])
    assert names == ["resume"] * 3 + ["none"] * 3


def test_a_repeated_token_is_drafted_up_to_the_limit():
    """Case E01's prompt: one token 48 times."""
    name, levels, drafted = draft(NgramDrafter(SETTINGS, None), [7] * 48, 16)
    assert (name, drafted) == ("ngram", [7] * 16)
    assert levels == (32,) * 16


def test_a_short_cycle_is_drafted_beyond_the_end_of_the_tokens():
    _, levels, drafted = draft(NgramDrafter(SETTINGS, None), [9, 1, 2, 3, 1, 2], 8)
    assert drafted == [3, 1, 2, 3, 1, 2, 3, 1]
    assert levels == (2, 3, 4, 5, 6, 7, 8, 9)


def test_a_longer_match_beats_a_more_recent_one():
    tokens = [5, 1, 2, 8, 6, 1, 2, 9, 5, 1, 2]
    assert draft(NgramDrafter(SETTINGS, None), tokens, 1)[2] == [8]


def test_a_long_match_is_found_behind_many_short_ones():
    tokens = [5, 6, 1, 8, *[7, 1] * 20, 5, 6, 1]
    assert draft(NgramDrafter(SETTINGS, None), tokens, 1)[2] == [8]


def test_a_match_is_measured_beyond_the_longest_ngram():
    """Both places share the last two tokens; the older one shares four."""
    tokens = [3, 4, 1, 2, 8, 6, 6, 1, 2, 9, 3, 4, 1, 2]
    settings = NgramSettings(max_match=2, min_match=1)
    _, levels, drafted = draft(NgramDrafter(settings, None), tokens, 2)
    assert drafted == [8, 6]
    assert levels == (4, 5)


def test_among_equal_matches_the_most_frequent_continuation_wins_then_the_latest():
    often = [1, 5, 2, 1, 5, 3, 1, 6, 4, 1]
    once = [1, 5, 2, 1, 6, 3, 1]
    assert draft(NgramDrafter(SETTINGS, None), often, 2)[2] == [5, 3]
    assert draft(NgramDrafter(SETTINGS, None), once, 2)[2] == [6, 3]


def test_a_match_below_the_least_length_is_no_offer():
    drafter = NgramDrafter(NgramSettings(max_match=4, min_match=2), None)
    assert draft(drafter, [1, 2, 3, 1], 4)[1] == ()
    assert draft(drafter, [1, 2, 3, 1, 2], 4)[2] == [3, 1, 2, 3]


@pytest.mark.parametrize("tokens", [[], [1], [1, 2, 3]])
def test_nothing_repeated_is_no_offer(tokens):
    assert NgramDrafter(SETTINGS, None).offer([row(tokens)], [5]) == [NO_OFFER]


def test_a_limit_of_zero_is_no_offer():
    assert NgramDrafter(SETTINGS, None).offer([row([1, 1, 1])], [0]) == [NO_OFFER]


def test_a_proposal_never_comes_from_an_earlier_round():
    """Case E15: what was found for fewer tokens, or for a row not offered now, is not used."""
    drafter = NgramDrafter(SETTINGS, None)
    drafter.offer([row([1, 2, 1], 0), row([4, 4, 4], 1)], [3, 3])
    drafter.offer([row([1, 2, 1], 0)], [3])
    grown, absent = row([1, 2, 1, 2], 0), row([4, 4, 4], 1)
    for proposal in drafter.propose([grown, absent], [2, 2]).proposals:
        assert proposal.tokens == []
        assert proposal.failure is not None


def test_rows_keep_their_own_tokens_and_lengths():
    drafter = NgramDrafter(SETTINGS, None)
    rows = [row([1, 2, 3, 1], 0), row([5, 6, 5], 1), row([7, 8], 2)]
    offers = drafter.offer(rows, [3, 4, 5])
    assert [len(offer.levels) for offer in offers] == [3, 4, 0]
    drafted = drafter.propose(rows[:2], [2, 3])
    assert [proposal.tokens for proposal in drafted.proposals] == [[2, 3], [6, 5, 6]]
    assert drafted.num_steps == 0


def test_another_row_s_output_is_offered_under_its_own_name():
    drafter = NgramDrafter(SETTINGS, Corpus(100, min_match=1, max_match=4))
    draft(drafter, [1, 2], 4, row_id=0)
    drafter.release(0, [1, 2, 3, 4, 5])
    assert draft(drafter, [9, 1, 2], 4, row_id=1) == ("corpus", (2, 3, 4), [3, 4, 5])


def test_the_row_s_own_match_wins_a_draw_with_the_corpus():
    drafter = NgramDrafter(SETTINGS, Corpus(100, min_match=1, max_match=4))
    draft(drafter, [1, 2], 4, row_id=0)
    drafter.release(0, [1, 2, 3, 4])
    assert draft(drafter, [1, 2, 8, 1, 2], 1, row_id=1) == ("ngram", (2,), [8])
    assert draft(drafter, [2, 8, 1, 2], 1, row_id=2) == ("corpus", (2,), [3])


def test_a_released_row_is_forgotten():
    drafter = NgramDrafter(SETTINGS, None)
    draft(drafter, [1, 2, 3, 1], 2, row_id=0)
    drafter.release(0, [1, 2, 3, 1])
    assert draft(drafter, [4, 5, 1], 2, row_id=0)[2] == []


@pytest.mark.parametrize(("least", "most"), [(0, 3), (4, 3), (1, 33)])
def test_match_lengths_out_of_order_are_refused_by_name(least, most):
    with pytest.raises(UserError, match=r"draft\.ngram: min_match"):
        NgramDrafter(NgramSettings(min_match=least, max_match=most), None)
