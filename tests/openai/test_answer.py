"""Answers and chunks have OpenAI's shapes: its own client's types read them without a rest."""

from __future__ import annotations

import math
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from outrider.core import Counters, Mode
from outrider.openai.answer import ChoiceText, Head, TokenText, usage
from outrider.openai.call import Endpoint
from outrider.openai.errors import RATE_LIMIT, error_object

COUNTERS = Counters(num_rounds=3, drafted=9, accepted=4, num_cached_tokens=2)
TOKENS = (
    TokenText(
        "a", b"a", -0.12345678, (TokenText("a", b"a", -0.12345678), TokenText("b", b"b", -2))
    ),
    TokenText("bc", b"bc", -math.inf),
)


def head(endpoint: Endpoint) -> Head:
    return Head(id="x-1", endpoint=endpoint, created=5, model="m", fingerprint="f")


def answer(endpoint: Endpoint, logprobs: tuple[TokenText, ...] | None = None) -> dict[str, Any]:
    choices = [
        ChoiceText(0, endpoint).whole("abc", logprobs, "stop"),
        ChoiceText(1, endpoint).whole("", None, "length"),
    ]
    return head(endpoint).whole(choices, usage(4, 3, COUNTERS, Mode.SPECULATIVE))


def test_a_chats_answer_is_what_openais_client_reads() -> None:
    read = ChatCompletion.model_validate(answer(Endpoint.CHAT, TOKENS), strict=True)
    assert [choice.message.content for choice in read.choices] == ["abc", ""]
    assert [choice.finish_reason for choice in read.choices] == ["stop", "length"]
    [first, second] = read.choices[0].logprobs.content or []  # type: ignore[union-attr]
    assert (first.token, first.logprob, first.bytes) == ("a", -0.123457, [97])
    assert [other.token for other in first.top_logprobs] == ["a", "b"]
    assert second.logprob == -9999.0  # JSON has no infinity
    assert (read.id, read.created, read.model, read.system_fingerprint) == ("x-1", 5, "m", "f")


def test_a_completions_answer_is_what_openais_client_reads() -> None:
    read = Completion.model_validate(answer(Endpoint.TEXT, TOKENS), strict=True)
    logprobs = read.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens == ["a", "bc"]
    assert logprobs.text_offset == [0, 1]
    assert logprobs.top_logprobs == [{"a": -0.123457, "b": -2.0}, {}]
    assert read.choices[1].logprobs is None


def test_usage_tells_what_was_cached_and_drafted() -> None:
    read = ChatCompletion.model_validate(answer(Endpoint.CHAT))
    assert read.usage is not None
    assert (read.usage.prompt_tokens, read.usage.completion_tokens) == (4, 3)
    assert read.usage.total_tokens == 7
    assert read.usage.prompt_tokens_details is not None
    assert read.usage.prompt_tokens_details.cached_tokens == 2
    speculation = {"rounds": 3, "drafted": 9, "accepted": 4, "mode": "speculative"}
    assert read.usage.model_extra == {"speculation": speculation}


def test_usage_without_a_measurement_holds_none() -> None:
    assert usage(4, 3) == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}


def test_a_chats_first_chunk_has_the_role_and_its_last_an_empty_delta() -> None:
    choice = ChoiceText(2, Endpoint.CHAT)
    said = [("", None), ("ab", None), ("", "stop")]
    chunks = [
        ChatCompletionChunk.model_validate(
            head(Endpoint.CHAT).chunk([choice.delta(text, None, reason)]), strict=True
        )
        for text, reason in said
    ]
    deltas = [chunk.choices[0].delta.model_dump(exclude_unset=True) for chunk in chunks]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "ab"}, {}]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "stop"]
    assert {chunk.choices[0].index for chunk in chunks} == {2}


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_text_offsets_count_on_from_chunk_to_chunk(cut: int) -> None:
    """However a completion is cut into chunks, its tokens say the same of themselves."""
    choice = ChoiceText(0, Endpoint.TEXT)
    chunks = [choice.delta("", part, None) for part in (TOKENS[:cut], TOKENS[cut:])]
    for chunk in chunks:
        Completion.model_validate(head(Endpoint.TEXT).chunk([{**chunk, "finish_reason": "stop"}]))
    whole = ChoiceText(0, Endpoint.TEXT).whole("abc", TOKENS, "stop")["logprobs"]
    for name, values in whole.items():
        assert [value for chunk in chunks for value in chunk["logprobs"][name]] == values


def test_an_error_names_the_field_and_has_all_of_openais_keys() -> None:
    assert error_object("no", param="n", code="unsupported") == {
        "error": {
            "message": "no",
            "type": "invalid_request_error",
            "param": "n",
            "code": "unsupported",
        }
    }
    assert error_object("later", RATE_LIMIT)["error"]["param"] is None
