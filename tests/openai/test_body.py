"""A body is read as OpenAI and vLLM mean it, or refused by the name of what is wrong."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.core import Constraint, ConstraintKind, SamplingParams, Speculation
from outrider.openai.body import NEUTRAL, read_call
from outrider.openai.call import Call, Endpoint
from outrider.openai.fields import SAMPLING, FieldCode, FieldError

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


def test_structured_outputs_of_vllm_mean_the_same() -> None:
    kind = ConstraintKind
    asked = {"regex": "a+", "json": None, "json_object": False, "choice": None}
    assert chat(structured_outputs=asked).constraint == Constraint(kind.REGEX, "a+")
    for schema in ({"type": "object"}, '{"type":"object"}'):
        found = text(structured_outputs={"json": schema}).constraint
        assert found == Constraint(kind.JSON_SCHEMA, '{"type":"object"}')
    found = text(structured_outputs={"json_object": True}).constraint
    assert found == Constraint(kind.JSON_OBJECT)
    assert text(structured_outputs={}).constraint is None


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"structured_outputs": {"choice": ["a"]}}, "structured_outputs.choice"),
        ({"structured_outputs": {"regex": 3}}, "structured_outputs.regex"),
        ({"structured_outputs": {"json": 3}}, "structured_outputs.json"),
        ({"structured_outputs": {"json": {}, "regex": "a"}}, "structured_outputs.regex"),
        ({"structured_outputs": "a"}, "structured_outputs"),
        ({"response_format": {"type": "json_object", "schema": {}}}, "response_format.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "x": 1}}},
            "response_format.json_schema.x",
        ),
        ({"regex": "a", "response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_no_part_of_a_structured_output_is_ignored(body: dict[str, Any], param: str) -> None:
    with pytest.raises(FieldError) as caught:
        chat(**body)
    assert caught.value.param == param


def test_values_that_ask_for_nothing_pass() -> None:
    bare = text(n=2)
    nothing = {
        "best_of": 2,
        "echo": False,
        "suffix": "",
        "tools": [],
        "functions": [],
        "function_call": "none",
        "modalities": ["text"],
        "use_beam_search": False,
        "store": False,
        "audio": None,
        "response_format": {"type": "text"},
        "logit_bias": {},
        "stop": [],
        "stream_options": None,
        "speculation": {"enabled": None},
    }
    assert text(n=2, **nothing) == bare


def test_usage_is_sent_with_a_stream_where_asked() -> None:
    asked = {"include_usage": True, "continuous_usage_stats": None, "include_obfuscation": False}
    call = chat(stream=True, stream_options=asked)
    assert (call.include_usage, call.continuous_usage_stats) == (True, False)
    for options in ({"include_obfuscation": True}, {"every": 3}):
        with pytest.raises(FieldError, match="stream_options"):
            chat(stream=True, stream_options=options)


def test_log_probabilities_are_a_flag_in_a_chat_and_a_count_in_a_completion() -> None:
    assert [chat().params.top_logprobs, text().params.top_logprobs] == [None, None]
    assert chat(logprobs=False).params.top_logprobs is None
    assert chat(logprobs=True).params.top_logprobs == 0
    assert chat(logprobs=True, top_logprobs=20).params.top_logprobs == 20
    assert [text(logprobs=count).params.top_logprobs for count in (0, 5)] == [0, 5]
    for wrong in ({"top_logprobs": 2}, {"logprobs": 3}, {"logprobs": True, "top_logprobs": 21}):
        with pytest.raises(FieldError, match="logprobs"):
            chat(**wrong)


def test_a_previous_answer_may_be_sent_back_as_it_came() -> None:
    answer: dict[str, Any] = {
        "role": "assistant",
        "content": "hi",
        "refusal": None,
        "tool_calls": [],
    }
    call = chat(messages=[*HELLO, answer])
    assert call.messages[1] == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"role": ["user"], "content": "x"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": []}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content"),
        ({"role": "user", "content": "x", "name": "me"}, "messages[0].name"),
        ({"role": "assistant", "content": "x", "audio": {"id": "1"}}, "messages[0].audio"),
        ("hello", "messages[0]"),
    ],
)
def test_a_message_that_is_not_text_is_named(message: object, param: str) -> None:
    with pytest.raises(FieldError) as caught:
        chat(messages=[message])
    assert caught.value.param == param


def test_developer_is_another_word_for_system() -> None:
    messages = [{"role": "developer", "content": [{"type": "text", "text": "be"}]}]
    assert chat(messages=messages).messages == ({"role": "system", "content": "be"},)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [{"type": "function"}]),
        ("tool_choice", "required"),
        ("functions", [{"name": "f"}]),
        ("verbosity", "low"),
        ("tool_choice", {"type": "function"}),
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
        ("logit_bias", {"9" * 5000: 1}),
        ("logit_bias", {"-1": 1}),
        ("temperature", float("nan")),
        ("seed", 2**63),
        ("min_tokens", 8),
    ],
)
def test_what_is_wrong_is_named(field: str, value: object) -> None:
    with pytest.raises(FieldError) as caught:
        text(**{field: value})
    assert caught.value.code is FieldCode.INVALID
    assert (caught.value.param or "").startswith(field)
    assert str(caught.value).startswith(field)


PARSED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted(
    {
        *SAMPLING,
        *NEUTRAL,
        *("prompt", "messages", "model", "n", "stream", "stream_options", "logprobs"),
        *("top_logprobs", "response_format", "structured_outputs", "regex", "speculation"),
        *("user", "kind", "metadata", "nonsense"),
    }
)


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(), PARSED, max_size=3))
def test_any_json_object_is_a_call_or_names_a_field_in_one_line(body: dict[str, Any]) -> None:
    for base, endpoint in (({"prompt": "x"}, Endpoint.TEXT), ({"messages": HELLO}, Endpoint.CHAT)):
        refused: tuple[str | None, str] | None = None
        try:
            call = read({**base, **body}, endpoint)
        except FieldError as error:
            refused = (error.param, str(error))
        else:
            assert 1 <= call.num_choices <= 8
        assert refused is None or (refused[0] and refused[1].isprintable())


@pytest.mark.parametrize("field", ["temperature", "echo", "structured_outputs"])
def test_no_depth_of_nesting_is_more_than_a_refusal(field: str) -> None:
    """A value that could be parsed must be quoted too, so depths near the limit are tried."""
    limit = sys.getrecursionlimit()
    for depth in range(limit - 200, limit):
        value: Any = {}
        for _ in range(depth):
            value = {"json": value}
        with pytest.raises(FieldError):
            text(**{field: value, "nonsense": 1})
