"""A body is read as OpenAI and vLLM mean it, or refused by the name of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from outrider.core import Constraint, ConstraintKind, SamplingParams, Speculation
from outrider.openai.body import read_call
from outrider.openai.call import Call, Endpoint
from outrider.openai.fields import FieldCode, FieldError

HELLO = [{"role": "user", "content": "hello"}]


def chat(**body: Any) -> Call:
    return read({"messages": HELLO, **body}, Endpoint.CHAT)


def text(**body: Any) -> Call:
    return read({"prompt": "hello", **body}, Endpoint.TEXT)


def read(body: dict[str, Any], endpoint: Endpoint) -> Call:
    defaults = SamplingParams(max_tokens=7, temperature=0.5)
    return read_call(body, endpoint, call_id="c", defaults=defaults, max_choices=8)


def test_what_is_left_out_comes_from_the_release() -> None:
    call = chat(temperature=None, model=None)
    assert (call.params.max_tokens, call.params.temperature) == (7, 0.5)
    assert (call.seed, call.n, call.stream, call.model) == (None, 1, False, None)
    assert call.speculation == Speculation()


def test_fields_of_openai_and_vllm_reach_the_call() -> None:
    call = chat(
        model="m",
        stream=True,
        stream_options={"include_usage": True},
        n=2,
        seed=5,
        max_completion_tokens=9,
        min_tokens=2,
        top_k=3,
        min_p=0.1,
        ignore_eos=True,
        stop="x",
        logit_bias={"3": -1},
        logprobs=True,
        top_logprobs=2,
        user="me",
        kind="greeting",
        speculation={"enabled": False},
        metadata={"a": "b"},
    )
    assert (call.model, call.stream, call.include_usage, call.n, call.seed) == (
        "m",
        True,
        True,
        2,
        5,
    )
    assert (call.params.max_tokens, call.params.min_tokens, call.params.top_k) == (9, 2, 3)
    assert (call.params.stop, call.params.top_logprobs) == (("x",), 2)
    assert (call.user, call.kind) == ("me", "greeting")
    assert not call.speculation.enabled


def test_a_completion_takes_text_ids_and_lists_of_both() -> None:
    assert text().prompts == ("hello",)
    assert text(prompt=[1, 2]).prompts == ((1, 2),)
    assert text(prompt=["a", [1]]).prompts == ("a", (1,))
    assert text(prompt=["a", "b"], n=2).num_choices == 4


def test_structured_output_is_read_from_one_of_its_fields() -> None:
    kind = ConstraintKind
    assert chat(response_format={"type": "text"}).constraint is None
    assert chat(response_format={"type": "json_object"}).constraint == Constraint(kind.JSON_OBJECT)
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    found = chat(response_format=schema).constraint
    assert found == Constraint(kind.JSON_SCHEMA, '{"type":"object"}')
    assert text(regex="a+").constraint == Constraint(kind.REGEX, "a+")
    assert text(grammar="start: x").constraint == Constraint(kind.GRAMMAR, "start: x")
    with pytest.raises(FieldError, match="can't be combined"):
        text(regex="a+", grammar="start: x")


def test_developer_is_another_word_for_system() -> None:
    messages = [{"role": "developer", "content": [{"type": "text", "text": "be"}]}]
    assert chat(messages=messages).messages == ({"role": "system", "content": "be"},)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [{"type": "function"}]),
        ("tool_choice", "required"),
        ("functions", []),
        ("audio", {}),
        ("modalities", ["audio"]),
        ("best_of", 2),
        ("echo", True),
        ("suffix", "x"),
        ("reasoning_effort", "low"),
        ("guided_regex", "a"),
    ],
)
def test_what_is_not_supported_is_named(field: str, value: object) -> None:
    with pytest.raises(FieldError) as caught:
        text(**{field: value})
    assert (caught.value.code, caught.value.param) == (FieldCode.UNSUPPORTED, field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 0),
        ("n", 9),
        ("n", "2"),
        ("stream", "yes"),
        ("temperature", -1),
        ("prompt", []),
        ("prompt", [[1], [-1]]),
        ("prompt", ["a"] * 9),
        ("prompt", {"a": 1}),
        ("stream_options", {"include_usage": True}),
        ("response_format", {"type": "yaml"}),
        ("response_format", "json"),
        ("regex", ""),
        ("speculation", {"enabled": "no"}),
        ("user", "a\nb"),
        ("min_tokens", 8),
    ],
)
def test_what_is_wrong_is_named(field: str, value: object) -> None:
    with pytest.raises(FieldError) as caught:
        text(**{field: value})
    assert caught.value.code is FieldCode.INVALID
    assert (caught.value.param or "").startswith(field)
    assert str(caught.value).startswith(field)
