"""Lines are read once each, by cursor; what is no fault of a release is no sample of it."""

from __future__ import annotations

import pytest

from outrider.serving.book import Book, sample_of
from outrider.serving.exposure import Exposure
from outrider.serving.request_entry import RequestEntry
from outrider.serving.sample import Cursor, Sample
from outrider.serving.split import Arm


def opened(most_lines: int = 100) -> Book:
    book = Book(most_lines)
    book.begin()
    return book


def fill(book: Book, *kinds: str) -> None:
    for kind in kinds:
        book.add(Sample(arm=Arm.STABLE, kind=kind), book.epoch)


def kinds(book: Book, cursor: Cursor, most: int = 100) -> tuple[str, Cursor]:
    reading = book.read(cursor, most)
    return "".join(sample.kind for sample in reading.samples), reading.cursor


def test_each_line_is_read_once() -> None:
    book = opened()
    fill(book, "a", "b", "c")
    some, cursor = kinds(book, Cursor(), most=2)
    assert some == "ab"
    assert kinds(book, cursor)[0] == "c"
    _, cursor = kinds(book, cursor)
    assert kinds(book, cursor) == ("", cursor)
    fill(book, "d")
    assert kinds(book, cursor)[0] == "d"


def test_a_slow_reader_is_told_what_it_lost() -> None:
    book = opened(most_lines=3)
    fill(book, "a")
    _, cursor = kinds(book, Cursor())
    fill(book, *"bcdef")
    reading = book.read(cursor)
    assert "".join(sample.kind for sample in reading.samples) == "def"
    assert reading.num_lost == 2
    assert book.read(reading.cursor).num_lost == 0


def test_another_candidate_begins_another_book_and_old_requests_are_not_in_it() -> None:
    book = opened()
    before = book.epoch
    fill(book, "a")
    _, cursor = kinds(book, Cursor())
    book.num_over_limit = 3
    book.begin()
    book.add(Sample(arm=Arm.CANDIDATE, kind="late"), before)
    fill(book, "b")
    reading = book.read(cursor)
    assert [sample.kind for sample in reading.samples] == ["b"]
    assert (reading.num_lost, reading.num_over_limit) == (0, 0)


def test_what_begins_while_nobody_is_tried_is_not_written_down_and_the_rest_stays() -> None:
    book = opened()
    during = book.epoch
    fill(book, "a")
    book.close()
    fill(book, "behind")
    book.add(Sample(arm=Arm.STABLE, kind="b"), during)
    assert kinds(book, Cursor())[0] == "ab"


def entry(status: int, error: str = "", **fields: object) -> RequestEntry:
    return RequestEntry(
        at_s=0.0,
        request_id="r",
        endpoint="chat",
        release="next",
        arm="candidate",
        status=status,
        error=error,
        first_token_s=0.5,
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("status", [400, 404, 429, 499])
def test_a_client_that_left_asked_wrongly_or_found_no_place_is_no_sample(status: int) -> None:
    assert sample_of(entry(status)) is None


def test_a_servers_error_is_one_and_a_whole_answer_is_none() -> None:
    failed, served = sample_of(entry(504, "deadline")), sample_of(entry(200, stream=True))
    assert failed is not None
    assert served is not None
    assert (failed.error, served.error) == ("deadline", "")
    assert (failed.first_token_s, served.first_token_s) == (None, 0.5)


def test_no_minute_holds_more_than_is_allowed() -> None:
    exposure = Exposure()
    admitted = [now for now in range(200) if exposure.admit(5, float(now))]
    for now in range(200):
        assert sum(now - 60 < at <= now for at in admitted) <= 5
    assert len(admitted) == 20
    assert all(Exposure().admit(0, 0.0) for _ in range(100))
