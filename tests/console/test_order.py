"""What a page may ask for, and from where."""

from __future__ import annotations

from typing import Any

import pytest

from outrider.console.order import Order, read_order, stranger
from outrider.core import UserError
from outrider.rollout.command import Verb


def test_a_verb_and_the_rollout_that_is_meant_will_do() -> None:
    body = {"verb": "pause", "rollout_id": "r-1"}
    assert read_order(body) == Order(verb=Verb.PAUSE, rollout_id="r-1")
    told = {**body, "reason": "it stutters", "who": "ada"}
    assert read_order(told) == Order(
        verb=Verb.PAUSE, rollout_id="r-1", who="ada", why="it stutters"
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "verb: one of pause, resume"),
        ({"verb": ["abort"]}, "verb: one of"),
        ({"verb": "start"}, "verb: one of"),
        ({"verb": "abort", "force": True}, "force: no such field"),
        ({"verb": "abort"}, "rollout_id: of the rollout that is meant"),
        ({"verb": "abort", "rollout_id": 1}, "rollout_id: a text"),
        ({"verb": "abort", "rollout_id": "r-1", "reason": 3}, "reason: a text"),
        ({"verb": "abort", "rollout_id": "r-1", "who": "a" * 101}, "who: a text of at most 100"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=f"^{said}"):
        read_order(body)


@pytest.mark.parametrize(
    ("headers", "is_strange"),
    [
        ({"host": "127.0.0.1:8000"}, False),  # no browser
        ({"host": "localhost:8000", "origin": "http://localhost:8000"}, False),
        ({"host": "[::1]:8000", "sec-fetch-site": "same-origin"}, False),
        ({"host": "127.0.0.1:8000", "origin": "http://evil.example"}, True),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:9000"}, True),
        ({"host": "127.0.0.1:8000", "origin": "null"}, True),
        ({"host": "127.0.0.1:8000", "sec-fetch-site": "cross-site"}, True),
        ({"host": "127.0.0.1:8000", "sec-fetch-site": "same-site"}, True),
        ({"host": "evil.example", "sec-fetch-site": "same-origin"}, True),  # DNS rebinding
        ({"host": "[", "sec-fetch-site": "same-origin"}, True),
        ({}, True),
    ],
)
def test_another_sites_page_asks_for_nothing(headers: dict[str, str], is_strange: bool) -> None:
    assert bool(stranger(headers, asks_no_key=True)) is is_strange


def test_with_a_key_the_service_may_have_any_name() -> None:
    headers = {"host": "lm.example", "origin": "https://lm.example"}
    assert stranger(headers, asks_no_key=False) == ""
    assert stranger({**headers, "origin": "https://evil.example"}, asks_no_key=False)
