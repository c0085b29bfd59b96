"""Structured output: speculation changes nothing of it, and it matches what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLParserLimits

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
from outrider.engine.drafters import Drafted, Drafter, DraftRow, Proposal
from outrider.engine.engine import Engine
from outrider.engine.llguidance_matcher import LlguidanceCompiler
from outrider.engine.round_record import RoundRecord
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


def toy(automaton: Automaton, drafter: Drafter | None, length: int, **more: object) -> Engine:
    return toy_engine(
        ScriptedModel(hashed, vocab_size=VOCAB, num_blocks=4096),
        drafter,
        length=length,
        constraints=AutomatonCompiler({"x": automaton}, vocab_size=VOCAB, eos_id=EOS),
        **more,  # type: ignore[arg-type]
    )


def ask(name: str = "r", **params: object) -> Request:
    shape = SamplingParams(**params)  # type: ignore[arg-type]
    return Request(request_id=name, prompt_ids=(2,), params=shape, constraint=ASKED)


def test_a_draft_is_cut_at_the_first_token_that_is_forbidden() -> None:
    """What the drafter says behind it is not even scored."""
    turns = Automaton({0: {0: 1, 2: 1}, 1: {1: 0, 3: 0}}, frozenset())
    script = ScriptedDrafter(lambda tokens, k: [0, 1, 0, 5, 5, 5][:k])
    records: list[RoundRecord] = []
    engine = toy(turns, script, 6, trace=records.append)
    plain = finish(toy(turns, None, 0), ask(max_tokens=9))["r"]
    assert finish(engine, ask(max_tokens=9))["r"].token_ids == plain.token_ids
    assert records[0].drafted == (0, 1, 0)
    assert all(5 not in record.drafted for record in records)


def test_what_is_forced_is_drafted_without_any_drafter_and_never_rejected() -> None:
    """Ten tokens of which only every fifth is a choice."""
    edges = {0: {0: 1, 3: 1}, 1: {1: 2}, 2: {2: 3}, 3: {4: 4}, 4: {5: 0}}
    records: list[RoundRecord] = []
    engine = toy(Automaton(edges, frozenset()), None, 8, trace=records.append)
    counters = finish(engine, ask(max_tokens=10, temperature=1.0, seed=3))["r"].counters
    assert counters.num_rounds == 3
    assert counters.drafted == counters.accepted > 0
    assert {record.drafter for record in records if record.drafted} == {"grammar"}


class Drawing:
    """Draws through the row's sampler; `blind`: from a q that knows nothing of the constraint."""

    name = "drawing"

    def __init__(self, *, blind: bool) -> None:
        self._blind = blind
        self.offer = ScriptedDrafter(lambda tokens, k: []).offer
        self.release = ScriptedDrafter(lambda tokens, k: []).release

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        pairs = zip(rows, lengths, strict=True)
        return Drafted([self._block(row, length) for row, length in pairs])

    def _block(self, row: DraftRow, length: int) -> Proposal:
        tokens: list[int] = []
        qs: list[torch.Tensor] = []
        for _ in range(length):
            logits = torch.tensor(hashed((*row.tokens, *tokens))) * 0.5
            token, q = row.sampler(logits, tokens)
            if self._blind:
                q = torch.zeros(VOCAB, dtype=torch.float64)
                q[[0, 6]] = 0.5
                token = int(np.random.default_rng([row.row_id, len(row.tokens)]).choice([0, 6]))
            assert q is not None
            tokens.append(token)
            qs.append(q)
            if self._blind:  # its sampler knows no way on behind what is forbidden
                break
        return Proposal(tokens, torch.stack(qs))


@pytest.mark.parametrize("blind", [False, True])
def test_rule_ratio_keeps_the_law_of_the_constrained_target(*, blind: bool) -> None:
    """Many seeds against the exact law; a draft cut by what was drawn would be far outside."""
    edges = {0: {0: 1, 1: 1, 2: 2, 5: 2}, 1: {3: 0, 4: 1, 5: 2}, 2: {0: 0, 6: 1, 4: 2}}
    num, counts = 3000, np.zeros((VOCAB, VOCAB))
    rules = EngineSettings(rule=RuleKind.RATIO, max_rows=64)
    records: list[RoundRecord] = []
    grammar = Automaton(edges, frozenset())
    engine = toy(grammar, Drawing(blind=blind), 2, settings=rules, trace=records.append)
    asked = [ask(f"r{i}", max_tokens=2, temperature=1.0, seed=i) for i in range(num)]
    for done in finish(engine, *asked).values():
        counts[done.token_ids] += 1
    law = np.zeros((VOCAB, VOCAB))
    for a, pa in constrained((2,), edges[0]).items():
        for b, pb in constrained((2, a), edges[edges[0][a]]).items():
            law[a, b] = pa * pb
    assert np.abs(counts / num - law).max() < 0.03
    drawn = {record.drafted[0] for record in records if record.drafted}
    assert drawn == ({0, 6} if blind else edges[0].keys())


def constrained(prefix: tuple[int, ...], edges: Mapping[int, int]) -> dict[int, float]:
    weights = {token: float(np.exp(hashed(prefix)[token])) for token in edges}
    return {token: weight / sum(weights.values()) for token, weight in weights.items()}


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


def bytes_json(merges: Sequence[tuple[str, str]] = ()) -> str:
    """ByteTokenizer in tokenizer.json's format: a byte-level BPE. Merges come before EOS."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = bytes_to_letters()
    vocabulary = {letters[byte]: byte for byte in range(256)}
    vocabulary |= {"".join(pair): 256 + index for index, pair in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<eos>", special=True)])
    assert tokenizer.token_to_id("<eos>") == 256 + len(merges)
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


MERGES = [("{", '"'), ('"', ":"), ("a", "m"), ("n", "am"), ("nam", "e"), ("y", "e"), ("x", "y")]


@pytest.fixture(scope="module")
def merging() -> LlguidanceCompiler:
    """Several ways to write the same text: what is forced is the tokenizer's own."""
    size = 257 + len(MERGES)
    return LlguidanceCompiler(lambda: bytes_json(MERGES), vocab_size=size, eos_ids=[size - 1])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(range(4)), st.randoms(use_true_random=False))
def test_looking_ahead_leaves_no_trace_and_all_views_agree(
    merging: LlguidanceCompiler, which: int, random: Random
) -> None:
    compiler, num_tokens = merging, 257 + len(MERGES)
    constraint = (
        Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA)),
        Constraint(ConstraintKind.JSON_OBJECT),
        Constraint(ConstraintKind.REGEX, "(yes|no|maybe so)[0-9]{0,3}"),
        Constraint(ConstraintKind.GRAMMAR, 'start: ("<" word ">")*\nword: /[xyz]{2,3}/'),
    )[which]
    matcher, committed = compiler.open(constraint), list[int]()
    while len(committed) < 20:
        drafted = list[int]()
        for _ in range(random.randrange(4)):
            fresh = compiler.open(constraint)
            for token in committed + drafted:
                fresh.commit(token)
            mask = fresh.allowed([])
            assert (matcher.allowed(drafted) == mask).all()
            assert [matcher.is_allowed(drafted, token) for token in range(num_tokens)] == list(mask)
            assert fresh.forced()[:1] in ([], list(np.flatnonzero(mask)))
            drafted.append(random.choice(list(np.flatnonzero(mask).tolist())))
            assert matcher.num_allowed(drafted) == len(drafted)
            if drafted[-1] == num_tokens - 1:
                break
        token = random.choice(np.flatnonzero(matcher.allowed([])).tolist())
        if token == num_tokens - 1:
            return
        matcher.commit(token)
        committed.append(token)


def test_the_names_of_a_schema_are_drafted_for_nothing(compiler: LlguidanceCompiler) -> None:
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA))
    engine = toy_engine(
        ScriptedModel(babble, vocab_size=257, context_length=2048, num_blocks=512),
        length=8,
        tokenizer=ByteTokenizer(),
        constraints=compiler,
    )
    asked = Request(
        request_id="r",
        prompt_ids=(65,),
        params=SamplingParams(max_tokens=300, temperature=1.0, seed=1),
        constraint=constraint,
    )
    done = finish(engine, asked)["r"]
    plain = say(compiler, constraint, 0, temperature=1.0, seed=1)
    assert done.token_ids == plain.token_ids
    assert done.counters.drafted == done.counters.accepted > len('"name": "size": "tags": ')
    assert done.counters.num_rounds < plain.counters.num_rounds / 2


def test_a_constraint_that_grows_too_large_fails_its_own_row_only() -> None:
    tight = LlguidanceCompiler(
        bytes_json,
        vocab_size=257,
        eos_ids=[256],
        limits=LLParserLimits(max_lexer_states=20, verbose_errors=False),
    )
    engine = toy_engine(
        ScriptedModel(babble, vocab_size=257), tokenizer=ByteTokenizer(), constraints=tight
    )
    wide = Constraint(ConstraintKind.REGEX, "(a|b)*a(a|b){12}c")
    params = SamplingParams(max_tokens=40)
    done = finish(
        engine,
        Request(request_id="wide", prompt_ids=(65,), params=params, constraint=wide),
        Request(request_id="free", prompt_ids=(65,), params=params),
    )
    assert done["wide"].finish_reason is FinishReason.ERROR
    assert str(done["wide"].error).startswith("regex: it grew too large")
    assert done["free"].finish_reason in (FinishReason.LENGTH, FinishReason.STOP)


def test_a_tokenizer_that_is_not_made_of_bytes_refuses_every_constraint() -> None:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"a": 0, "<eos>": 1}, unk_token="a"))
    for eos_ids in ([1], [], [7]):
        compiler = LlguidanceCompiler(words.to_str, vocab_size=2, eos_ids=eos_ids)
        with pytest.raises(UserError, match="regex: structured output is not available"):
            compiler.check(Constraint(ConstraintKind.REGEX, "a"))
