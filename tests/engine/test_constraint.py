"""Structured output: speculation changes nothing of it, and it matches what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.config.schema import EngineSettings, RuleKind
from outrider.core import (
    Completion,
    Constraint,
    ConstraintKind,
    FinishReason,
    Request,
    SamplingParams,
    UserError,
)
from outrider.engine.llguidance_matcher import LlguidanceCompiler
from outrider.testing import (
    Automaton,
    AutomatonCompiler,
    ByteTokenizer,
    ScriptedDrafter,
    ScriptedModel,
    finish,
    toy_engine,
)

VOCAB, EOS = 8, 7
TABLE = np.random.default_rng(3).normal(size=(997, VOCAB)) * 2
ASKED = Constraint(ConstraintKind.GRAMMAR, "x")


def hashed(prefix: tuple[int, ...]) -> list[float]:
    key = 0
    for token in prefix:
        key = (key * 31 + token + 1) % 997
    return list(TABLE[key])


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """A few states; a dead end accepts."""
    states = range(draw(st.integers(1, 4)))
    edges = {
        state: draw(st.dictionaries(st.integers(0, EOS - 1), st.sampled_from(states), max_size=4))
        for state in states
    }
    return Automaton(edges, frozenset(draw(st.sets(st.sampled_from(states)))))


def decode(
    automaton: Automaton,
    length: int,
    rule: RuleKind,
    params: SamplingParams,
    *,
    num_blocks: int = 64,
) -> Completion:
    def guess(tokens: Sequence[int], k: int) -> list[int]:
        """Right as often as a drafter that knows the target but not the grammar can be."""
        prefix, out = tuple(tokens), []
        for _ in range(k):
            out.append(int(np.argmax(hashed(prefix))))
            prefix = (*prefix, out[-1])
        return out

    engine = toy_engine(
        ScriptedModel(hashed, vocab_size=VOCAB, num_blocks=num_blocks),
        ScriptedDrafter(guess),
        length=length,
        settings=EngineSettings(rule=rule),
        constraints=AutomatonCompiler({"x": automaton}, vocab_size=VOCAB, eos_id=EOS),
    )
    asked = [
        Request(request_id=f"r{i}", prompt_ids=(i, 2), params=params, constraint=ASKED)
        for i in range(3)
    ]
    return finish(engine, *asked)["r1"]


def accepts(automaton: Automaton, done: Completion) -> bool:
    state, tokens = 0, list(done.token_ids)
    ended = tokens[-1:] == [EOS]
    for token in tokens[:-1] if ended else tokens:
        if token not in automaton.edges.get(state, {}):
            return False
        state = automaton.edges[state][token]
    dead_end = not automaton.edges.get(state)
    return not ended or state in automaton.accepting or dead_end


@settings(max_examples=60, deadline=None)
@given(
    automata(),
    st.integers(1, 6),
    st.sampled_from([0.0, 1.5]),
    st.integers(0, 5),
    st.sampled_from([0.0, 0.7]),
)
def test_constrained_output_is_what_plain_decoding_gives_and_matches(
    automaton: Automaton, length: int, temperature: float, min_tokens: int, penalty: float
) -> None:
    params = SamplingParams(
        max_tokens=12,
        temperature=temperature,
        min_tokens=min_tokens,
        frequency_penalty=penalty,
        seed=5,
    )
    plain = decode(automaton, 0, RuleKind.COUPLED, params)
    drafted = decode(automaton, length, RuleKind.COUPLED, params)
    assert drafted.token_ids == plain.token_ids
    assert accepts(automaton, plain)
    # Few blocks: rows are put back and begun again.
    tight = decode(automaton, length, RuleKind.COUPLED, params, num_blocks=7)
    assert tight.token_ids == plain.token_ids


@settings(max_examples=30, deadline=None)
@given(automata(), st.integers(1, 6), st.integers(0, 1000))
def test_rule_ratio_keeps_to_the_grammar_too(automaton: Automaton, length: int, seed: int) -> None:
    params = SamplingParams(max_tokens=12, temperature=1.5, seed=seed)
    assert accepts(automaton, decode(automaton, length, RuleKind.RATIO, params))


def test_a_draft_is_cut_at_the_first_token_that_is_forbidden() -> None:
    """0 and 1 take turns: what the drafter says behind is never scored."""
    turns = Automaton({0: {0: 1}, 1: {1: 0}}, frozenset())
    engine = toy_engine(
        model := ScriptedModel(hashed, vocab_size=VOCAB),
        ScriptedDrafter(lambda tokens, k: [0, 1, 0, 5, 5, 5][:k]),
        length=6,
        constraints=AutomatonCompiler({"x": turns}, vocab_size=VOCAB, eos_id=EOS),
    )
    request = Request(
        request_id="r", prompt_ids=(2,), params=SamplingParams(max_tokens=9), constraint=ASKED
    )
    engine.submit(request)
    for num_rounds in (1, 2):  # each: one committed token and the three that may follow it
        engine.step()
        assert model.num_tokens == 4 * num_rounds
    assert finish(engine)["r"].token_ids == (0, 1) * 4 + (0,)


def test_a_constraint_without_a_compiler_or_with_ignore_eos_is_refused() -> None:
    engine = toy_engine(ScriptedModel(hashed, vocab_size=VOCAB))
    asked = Request(request_id="r", prompt_ids=(1,), constraint=ASKED)
    with pytest.raises(UserError, match="grammar: structured output is not available"):
        engine.submit(asked)
    with pytest.raises(UserError, match="ignore_eos"):
        engine.submit(
            Request(
                request_id="r",
                prompt_ids=(1,),
                constraint=ASKED,
                params=SamplingParams(ignore_eos=True),
            )
        )


# -- the real library -------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 2},
    },
    "required": ["name", "size", "tags"],
    "additionalProperties": False,
}
BYTES = np.random.default_rng(5).normal(size=(997, 257))


def babble(prefix: tuple[int, ...]) -> list[float]:
    key = 0
    for token in prefix[-6:]:
        key = (key * 31 + token + 1) % 997
    return list(BYTES[key])


def bytes_json() -> str:
    """ByteTokenizer in tokenizer.json's format: a byte-level BPE without merges."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = bytes_to_letters()
    vocabulary = {letters[byte]: byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<eos>", special=True)])
    assert tokenizer.token_to_id("<eos>") == 256
    return str(tokenizer.to_str())


def bytes_to_letters() -> dict[int, str]:
    """GPT-2's printable letter for each byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


@pytest.fixture(scope="module")
def compiler() -> LlguidanceCompiler:
    return LlguidanceCompiler(bytes_json, vocab_size=257, eos_ids=[256])


def say(
    compiler: LlguidanceCompiler, constraint: Constraint, length: int, **params: object
) -> Completion:
    engine = toy_engine(
        ScriptedModel(babble, vocab_size=257, context_length=2048, num_blocks=512),
        ScriptedDrafter(
            lambda tokens, k: [*b'", "size": 0'][:k] if len(tokens) % 3 else [300 % 257] * k
        ),
        length=length,
        tokenizer=ByteTokenizer(),
        constraints=compiler,
    )
    asked = Request(
        request_id="r",
        prompt_ids=(65,),
        params=SamplingParams(**{"max_tokens": 300, **params}),  # type: ignore[arg-type]
        constraint=constraint,
    )
    return finish(engine, asked)["r"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_schema_gives_json_that_fits_it(
    compiler: LlguidanceCompiler, temperature: float, seed: int
) -> None:
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA))
    plain = say(compiler, constraint, 0, temperature=temperature, seed=seed)
    assert plain.finish_reason is FinishReason.STOP
    value = json.loads(plain.text)
    assert list(value) == ["name", "size", "tags"]
    assert 0 <= value["size"] <= 99
    assert set(value["tags"]) <= {"a", "bc"}
    for length in (1, 4, 12):
        drafted = say(compiler, constraint, length, temperature=temperature, seed=seed)
        assert drafted.token_ids == plain.token_ids


def test_an_object_a_regex_and_a_grammar_are_followed(compiler: LlguidanceCompiler) -> None:
    kind = ConstraintKind
    assert isinstance(json.loads(say(compiler, Constraint(kind.JSON_OBJECT), 3).text), dict)
    for text in (r"[a-c]{3}-\d{2}", "(yes|no)"):
        said = say(compiler, Constraint(kind.REGEX, text), 3)
        assert re.fullmatch(text, said.text), said.text
        assert said.finish_reason is FinishReason.STOP
    lark = 'start: "<" word ">"\nword: /[xyz]{2}/'
    assert re.fullmatch("<[xyz]{2}>", say(compiler, Constraint(kind.GRAMMAR, lark), 3).text)


def test_output_cut_by_its_length_is_a_beginning_of_what_was_asked(
    compiler: LlguidanceCompiler,
) -> None:
    said = say(compiler, Constraint(ConstraintKind.REGEX, "a{20}"), 4, max_tokens=5)
    assert (said.text, said.finish_reason) == ("aaaaa", FinishReason.LENGTH)


@pytest.mark.parametrize(
    ("kind", "text", "field"),
    [
        (ConstraintKind.JSON_SCHEMA, '{"type": "wrong"}', "response_format"),
        (ConstraintKind.REGEX, "(", "regex"),
        (ConstraintKind.GRAMMAR, "start: nothing", "grammar"),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_its_field_in_one_line(
    compiler: LlguidanceCompiler, kind: ConstraintKind, text: str, field: str
) -> None:
    with pytest.raises(UserError) as caught:
        compiler.check(Constraint(kind, text))
    assert str(caught.value).startswith(f"{field}: it can't be followed: ")
    assert "\n" not in str(caught.value)
