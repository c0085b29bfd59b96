"""What blocks is read in a thread, once at a time; what failed is said, not shown."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from outrider.console.source import Source
from outrider.core import Fault


def test_the_last_answer_is_kept_until_one_fails() -> None:
    answers: list[int | Exception] = [1, Fault("nobody is there"), 2, KeyError("secret")]

    def look() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def story() -> list[tuple[int | None, str]]:
        source, seen = Source("numbers", look), []
        while answers:
            await source.read()
            seen.append((source.value, source.note))
        return seen

    assert asyncio.run(story()) == [
        (1, ""),
        (None, "numbers: nobody is there"),
        (2, ""),
        (None, "numbers: can't be read now (KeyError)"),
    ]


def test_one_that_hangs_is_not_asked_twice_and_comes_back_by_itself() -> None:
    free, num_asked = threading.Event(), 0

    def look() -> str:
        nonlocal num_asked
        num_asked += 1
        free.wait(30)
        return "here"

    async def story() -> None:
        source = Source("it", look, wait_s=0.05)
        for _ in range(3):
            await source.read()
            assert (source.value, source.note) == (None, "it: no answer within 0.05 s")
        free.set()
        while source.value is None:
            await source.read()
        assert (num_asked, source.value, source.note) == (1, "here", "")

    asyncio.run(story())


def test_the_same_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def look() -> None:
        raise Fault("nobody is there")

    async def story() -> None:
        source = Source("numbers", look)
        for _ in range(3):
            await source.read()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert caplog.messages == ["numbers: nobody is there"]
