"""A row is read as OpenAI means it, or refused by the name of what is wrong; nothing is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from outrider.bulk.openai_batch import RowReader
from outrider.bulk.rows import ErrorCode, InvalidRowError, Row, derived_seed
from outrider.config.schema import SamplingSettings
from outrider.core import Speculation
from outrider.openai.call import Endpoint

READER = RowReader(SamplingSettings(max_tokens=7, temperature=0.5), seed=3)
MESSAGES = [{"role": "user", "content": "Hello"}]


def chat(**fields: Any) -> dict[str, Any]:
    body = {"messages": MESSAGES, **fields}
    return {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}


def text(**fields: Any) -> dict[str, Any]:
    body = {"prompt": "Once", **fields}
    return {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": body}


def read(value: dict[str, Any]) -> Row:
    return READER.row(value, 1, "a")


def refused(value: dict[str, Any]) -> InvalidRowError:
    with pytest.raises(InvalidRowError) as caught:
        read(value)
    return caught.value


def test_every_sampling_field_reaches_the_engine() -> None:
    row = read(
        chat(
            temperature=1,
            top_p=0.9,
            top_k=40,
            min_p=0.05,
            seed=11,
            max_completion_tokens=20,
            min_tokens=2,
            stop="END",
            stop_token_ids=[5],
            ignore_eos=True,
            presence_penalty=0.5,
            frequency_penalty=-0.5,
            repetition_penalty=1.1,
            logit_bias={"17": -100},
            logprobs=True,
            top_logprobs=3,
            speculation={"enabled": True, "max_draft_length": 4},
        )
    )
    params = row.params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (1.0, 0.9, 40, 0.05)
    assert (params.seed, params.max_tokens, params.min_tokens) == (11, 20, 2)
    assert (params.stop, params.stop_token_ids, params.ignore_eos) == (("END",), (5,), True)
    assert (params.presence_penalty, params.frequency_penalty) == (0.5, -0.5)
    assert (params.repetition_penalty, params.logit_bias) == (1.1, {17: -100.0})
    assert params.top_logprobs == 3
    assert row.speculation == Speculation(enabled=True, max_draft_length=4)


def test_what_a_row_leaves_out_comes_from_the_settings() -> None:
    row = read(chat(model="any-name", temperature=None))
    assert (row.params.max_tokens, row.params.temperature) == (7, 0.5)
    assert row.params.seed == derived_seed(3, "a")
    assert row.speculation == Speculation()


def test_a_derived_seed_depends_on_the_id_and_the_base_only() -> None:
    assert READER.row(text(), 1, "x").params.seed == READER.row(text(), 99, "x").params.seed
    assert READER.row(text(), 1, "x").params.seed != READER.row(text(), 1, "y").params.seed
    assert derived_seed(1, "x") != derived_seed(2, "x")


@pytest.mark.parametrize("neutral", [{"stream": False}, {"n": 1}, {"tools": []}, {"user": "me"}])
def test_a_field_that_asks_for_nothing_is_taken(neutral: dict[str, Any]) -> None:
    assert read(chat(**neutral)).messages is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", True),
        ("n", 2),
        ("tools", [{"type": "function"}]),
        ("response_format", {"type": "json_object"}),
        ("best_of", 3),
        ("guided_regex", "a+"),
        ("audio", {}),
    ],
)
def test_a_field_that_is_not_supported_is_named(field: str, value: object) -> None:
    """P01: `"stream": true` is that row's error."""
    problem = refused(chat(**{field: value}))
    assert problem.code is ErrorCode.UNSUPPORTED
    assert str(problem).startswith(field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", "hot"),
        ("temperature", float("nan")),
        ("temperature", True),
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_k", -1),
        ("top_k", 1.5),
        ("min_p", 2),
        ("seed", 2**63),
        ("max_tokens", 0),
        ("max_tokens", "12"),
        ("min_tokens", 99),
        ("stop", ["a", ""]),
        ("stop", 7),
        ("stop_token_ids", [-1]),
        ("ignore_eos", 1),
        ("presence_penalty", 3),
        ("repetition_penalty", 0),
        ("logit_bias", {"x": 1}),
        ("logit_bias", {"1": 101}),
        ("top_logprobs", 2),
        ("logprobs", "yes"),
        ("messages", []),
        ("messages", [{"role": "robot", "content": "x"}]),
        ("messages", [{"role": "user", "content": None}]),
        ("messages", [{"role": "user", "content": [{"type": "image_url"}]}]),
        ("speculation", 1),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(field: str, value: object) -> None:
    problem = refused(chat(**{field: value}))
    assert problem.code is ErrorCode.INVALID_FIELD
    assert field in str(problem)
    assert "\n" not in str(problem)


def test_max_tokens_and_its_newer_name_must_agree() -> None:
    assert read(chat(max_tokens=3, max_completion_tokens=3)).params.max_tokens == 3
    assert "differ" in str(refused(chat(max_tokens=3, max_completion_tokens=4)))


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    row = read(chat(messages=[{"role": "user", "content": parts}]))
    assert row.messages == ({"role": "user", "content": "ab"},)


def test_completions_take_a_string_or_token_ids_and_a_count_of_logprobs() -> None:
    assert (read(text()).text, read(text()).endpoint) == ("Once", Endpoint.TEXT)
    assert read(text(prompt=[1, 2])).token_ids == (1, 2)
    assert read(text(logprobs=0)).params.top_logprobs == 0
    assert read(text()).params.top_logprobs is None
    assert "one prompt a row" in str(refused(text(prompt=["a", "b"])))


@pytest.mark.parametrize("url", ["/v1/embeddings", None, 3, ["/v1/completions"]])
def test_an_unknown_url_is_refused(url: object) -> None:
    """P01."""
    assert refused({**chat(), "url": url}).code is ErrorCode.UNKNOWN_URL


@pytest.mark.parametrize("change", [{"method": "GET"}, {"body": "x"}, {"priority": 1}, {"kind": 4}])
def test_a_wrong_envelope_is_refused(change: dict[str, Any]) -> None:
    problem = refused({**chat(), **change})
    assert next(iter(change)) in str(problem)


def test_column_rows_take_a_prompt_or_messages_and_sampling_columns() -> None:
    row = read({"prompt": "Once", "kind": "tale", "max_tokens": 3.0, "top_p": None})
    assert (row.text, row.kind, row.params.max_tokens) == ("Once", "tale", 3)
    assert read({"messages": MESSAGES}).endpoint is Endpoint.CHAT


@pytest.mark.parametrize("value", [{}, {"prompt": "a", "messages": MESSAGES}, {"text": "a"}])
def test_a_row_that_is_neither_form_is_refused(value: dict[str, Any]) -> None:
    assert "prompt or messages" in str(refused(value))
