"""Text as tokens come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.text import TextStream, find_stop, num_safe


def decode_bytes(ids: list[int]) -> str:
    return bytes(ids).decode("utf-8", errors="replace")


@given(st.text(max_size=30))
def test_the_pieces_add_up_to_the_whole(text: str) -> None:
    stream = TextStream(decode_bytes)
    for byte in text.encode():
        before = stream.text
        stream.push(byte)
        assert stream.text.startswith(before)
        assert text.startswith(stream.text)
    stream.flush()
    assert stream.text == text


def test_a_character_is_held_until_its_last_byte() -> None:
    stream = TextStream(decode_bytes)
    seen = []
    for byte in "a€b".encode():
        stream.push(byte)
        seen.append(stream.text)
    assert seen == ["a", "a", "a", "a€", "a€b"]


def test_a_broken_character_comes_out_at_the_end() -> None:
    stream = TextStream(decode_bytes)
    stream.push(0xE2)
    stream.flush()
    assert stream.text == "\ufffd"


def test_whole_characters_before_an_unfinished_one_are_seen_but_not_out() -> None:
    pieces = [b"ha", b" \xf0\x9f", b"\x98\x80"]
    stream = TextStream(lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace"))
    seen = []
    for token in range(3):
        stream.push(token)
        seen.append((stream.seen, stream.text))
    assert seen == [("ha", "ha"), ("ha ", "ha"), ("ha \U0001f600", "ha \U0001f600")]


def test_a_stop_passed_by_is_not_found_again() -> None:
    """A shorter stop does not look back as far as the longest would."""
    assert find_stop("xxax", ["a", "bcd"], 3) is None
    assert find_stop("xxabcd", ["a", "bcd"], 5) == (3, "bcd")


def test_the_earliest_stop_wins() -> None:
    assert find_stop("abc def", ["def", "c d"], 0) == (2, "c d")
    assert find_stop("abc", ["x"], 0) is None
    assert find_stop("aab", ["a"], 1) == (1, "a")


@given(st.text("ab", max_size=12), st.lists(st.text("ab", min_size=1, max_size=5), max_size=3))
def test_what_is_safe_can_never_be_part_of_a_later_stop(text: str, stops: list[str]) -> None:
    if any(stop in text for stop in stops):
        return
    safe = num_safe(text, stops)
    for stop in stops:
        for begin in range(safe):
            assert not stop.startswith(text[begin:]), "a stop could begin in what was sent"
