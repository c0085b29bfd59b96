"""The whole engine over real (tiny, random) models in float64: every drafter, every length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers

from outrider.config.schema import (
    BreakerSettings,
    DrafterKind,
    DraftLengthSettings,
    EngineSettings,
    LengthPolicy,
    NgramSettings,
    RuleKind,
)
from outrider.core import (
    Completion,
    Constraint,
    ConstraintKind,
    Request,
    SamplingParams,
    SystemClock,
)
from outrider.engine.constraint import ConstraintCompiler
from outrider.engine.cost import CostModel
from outrider.engine.drafters.factory import open_drafter
from outrider.engine.drafters.head import HeadDrafter
from outrider.engine.drafters.model import ModelDrafter
from outrider.engine.engine import Engine
from outrider.engine.head import CompiledHead
from outrider.engine.round_record import RoundRecord
from outrider.engine.runtimes.torch_runtime import TorchModel
from outrider.engine.speculation import SpeculationPolicy
from outrider.testing import (
    Automaton,
    AutomatonCompiler,
    LetterTokenizer,
    finish,
    toy_engine,
    toy_head,
)

VOCAB = 24
REPEATED = tuple([3] * 48)
PROMPTS = [REPEATED, (1, 2, 3, 4) * 6, (7,), tuple(range(1, 20))]
Open = Callable[..., Engine]


def tiny_llama(
    seed: int,
    dtype: torch.dtype = torch.float64,
    *,
    num_blocks: int = 96,
    feature_layers: tuple[int, ...] = (),
) -> TorchModel:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
    )
    return TorchModel(
        transformers.LlamaForCausalLM(config).to(dtype),
        num_blocks=num_blocks,
        block_size=8,
        context_length=256,
        num_threads=1,
        digest=str(seed),
        feature_layers=feature_layers,
    )


def head_drafter(seed: int = 0) -> HeadDrafter:
    """A random head of the targets here; its words are two thirds of theirs."""
    head = toy_head(vocab_size=VOCAB, hidden_size=32, seed=seed, scale=0.3)
    embedding = torch.randn(VOCAB, 32, generator=torch.Generator().manual_seed(seed)).double()
    return HeadDrafter(CompiledHead(head, embedding), vocab_size=VOCAB)


@pytest.fixture(scope="module")
def open_engine() -> Open:
    target, other = tiny_llama(1, feature_layers=(0, 1)), tiny_llama(2)
    clock = SystemClock()

    def open_(
        kind: DrafterKind,
        length: int | None,
        *,
        rule: RuleKind = RuleKind.COUPLED,
        own_draft: bool = False,
        over_head: bool = False,
        max_rows: int = 8,
        constraints: ConstraintCompiler | None = None,
    ) -> Engine:
        """`length` None: adaptive, with the breaker. `own_draft`: the draft is the target;
        `over_head`: kind composite has a head behind the look-up."""
        lengths = (
            DraftLengthSettings()
            if length is None
            else DraftLengthSettings(policy=LengthPolicy.FIXED, max=length)
        )
        drafter = open_drafter(
            kind,
            vocab_size=VOCAB,
            clock=clock,
            ngram=NgramSettings(),
            model=tiny_llama(1) if own_draft else other,
            head=head_drafter() if kind is DrafterKind.HEAD or over_head else None,
        )
        policy = SpeculationPolicy(lengths, BreakerSettings(enabled=length is None), CostModel({}))
        return Engine(
            target,
            LetterTokenizer("ABCDEFGHIJKLMNOPQRSTUVW"),
            drafter,
            policy,
            EngineSettings(rule=rule, max_rows=max_rows),
            constraints=constraints,
        )

    return open_


def asks(**params: object) -> list[Request]:
    return [
        Request(
            request_id=f"r{i}",
            prompt_ids=prompt,
            params=SamplingParams(**{"max_tokens": 24, "seed": i, **params}),  # type: ignore[arg-type]
        )
        for i, prompt in enumerate(PROMPTS)
    ]


def tokens(done: dict[str, Completion]) -> dict[str, tuple[int, ...]]:
    return {name: completion.token_ids for name, completion in sorted(done.items())}


SHAPES = {
    "greedy": {},
    "sampled": {"temperature": 1.0, "top_p": 0.95},
    "penalised": {"temperature": 0.7, "frequency_penalty": 0.5, "repetition_penalty": 1.1},
}


@pytest.fixture(scope="module")
def plain(open_engine: Open) -> dict[str, dict[str, tuple[int, ...]]]:
    """Each request alone in an engine without a drafter."""
    return {
        shape: {
            ask.request_id: finish(open_engine(DrafterKind.NONE, 0), ask)[ask.request_id].token_ids
            for ask in asks(**params)
        }
        for shape, params in SHAPES.items()
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [0, 1, 2, 16, None])
@pytest.mark.parametrize("kind", list(DrafterKind), ids=lambda kind: kind.value)
def test_every_drafter_and_length_gives_the_tokens_of_plain_decoding(
    open_engine: Open,
    plain: dict[str, dict[str, tuple[int, ...]]],
    kind: DrafterKind,
    length: int | None,
    shape: str,
) -> None:
    """E01 (one prompt is a token repeated 48 times), E09, E19: batch against alone, in float64."""
    done = finish(open_engine(kind, length), *asks(**SHAPES[shape]))
    assert tokens(done) == plain[shape]


def test_the_draft_state_is_valid_after_a_pause() -> None:
    """E14: draft = target; k 3, then 20 rounds of k 0, then k 3 accepts 3 of 3."""
    records: list[RoundRecord] = []
    engine = toy_engine(
        tiny_llama(1),
        ModelDrafter(tiny_llama(1), vocab_size=VOCAB),
        length=lambda round_, row_id: 0 if 4 <= round_ < 24 else 3,
        trace=records.append,
    )
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    done = finish(engine, Request(request_id="r", prompt_ids=(1, 2, 3), params=params))["r"]
    paused = records[4:24]
    assert [record.drafted for record in paused] == [()] * 20
    assert (len(records[24].drafted), records[24].accepted) == (3, 3)
    assert done.counters.num_caught_up >= 20


def test_the_draft_state_is_valid_after_preemption() -> None:
    """Law 10: draft = target; who was preempted comes back, and still every token is accepted."""
    requests = [
        Request(
            request_id=f"r{i}",
            prompt_ids=(i + 1, 2, 3, 4),
            params=SamplingParams(max_tokens=40, temperature=1.0, seed=i, ignore_eos=True),
        )
        for i in range(3)
    ]
    roomy = finish(toy_engine(tiny_llama(1)), *requests)
    drafter = ModelDrafter(tiny_llama(1), vocab_size=VOCAB)
    done = finish(toy_engine(tiny_llama(1, num_blocks=13), drafter, length=3), *requests)
    assert tokens(done) == tokens(roomy)
    assert sum(completion.counters.num_preemptions for completion in done.values()) > 0
    for completion in done.values():
        assert completion.counters.accepted == completion.counters.evaluated > 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [3, None])
def test_a_look_up_before_a_head_gives_the_tokens_of_plain_decoding(
    open_engine: Open, plain: dict[str, dict[str, tuple[int, ...]]], length: int | None, shape: str
) -> None:
    engine = open_engine(DrafterKind.COMPOSITE, length, over_head=True)
    assert tokens(finish(engine, *asks(**SHAPES[shape]))) == plain[shape]
    by_drafter: dict[str, dict[str, Any]] = engine.stats()["by_drafter"]  # type: ignore[assignment]
    assert by_drafter["head"]["drafted"] > 0
    assert "model" not in by_drafter


def test_counters_by_drafter_add_up_to_those_of_the_engine(open_engine: Open) -> None:
    engine = open_engine(DrafterKind.COMPOSITE, 3)
    finish(engine, *asks(temperature=1.0))
    by_drafter: dict[str, dict[str, Any]] = engine.stats()["by_drafter"]  # type: ignore[assignment]
    assert set(by_drafter) > {"ngram", "model"}  # and the look-up's other kinds of offer
    for name in ("drafted", "evaluated", "accepted", "num_caught_up"):
        total = getattr(engine.counters, name)
        assert sum(each[name] for each in by_drafter.values()) == total
    rounds = [each["num_draft_rounds"] for each in by_drafter.values()]
    assert all(rounds)
    assert sum(rounds) == engine.counters.num_draft_rounds


def test_a_draft_equal_to_the_target_is_always_accepted(open_engine: Open) -> None:
    for rule in RuleKind:
        engine = open_engine(DrafterKind.MODEL, 4, own_draft=True, rule=rule)
        done = finish(engine, *asks(temperature=1.0))
        for completion in done.values():
            assert completion.counters.accepted == completion.counters.evaluated
            assert completion.counters.drafted > 0


def test_under_the_ratio_rule_greedy_rows_are_exact_too(
    open_engine: Open, plain: dict[str, dict[str, tuple[int, ...]]]
) -> None:
    engine = open_engine(DrafterKind.COMPOSITE, 5, rule=RuleKind.RATIO)
    assert tokens(finish(engine, *asks())) == plain["greedy"]


def test_the_ratio_rule_is_repeatable(open_engine: Open) -> None:
    runs = [
        tokens(
            finish(open_engine(DrafterKind.MODEL, 3, rule=RuleKind.RATIO), *asks(temperature=1.0))
        )
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_logprobs_equal_those_of_plain_decoding(open_engine: Open) -> None:
    """E10: within 1e-5 in float64, for every emitted token."""
    wanted = finish(open_engine(DrafterKind.NONE, 0), *asks(top_logprobs=2))
    got = finish(open_engine(DrafterKind.NGRAM, 5), *asks(top_logprobs=2))
    for name, completion in wanted.items():
        theirs, mine = completion.logprobs, got[name].logprobs
        assert theirs is not None
        assert mine is not None
        assert len(mine) == len(got[name].token_ids)
        for one, other in zip(theirs, mine, strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=1e-5)
            assert [token for token, _ in one.top] == [token for token, _ in other.top]


# Choices, forced runs, and ends, over letters that the model likes and letters that it does not.
GRAMMAR = Automaton(
    {
        0: {token: token % 4 for token in range(1, 20)},
        1: {5: 2},
        2: {6: 3, 7: 0},
        3: {8: 0, 9: 3, 20: 1},
    },
    frozenset({3}),
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", list(DrafterKind), ids=lambda kind: kind.value)
def test_constrained_output_is_that_of_plain_decoding_at_every_length(
    open_engine: Open, kind: DrafterKind, shape: str
) -> None:
    grammars = AutomatonCompiler({"g": GRAMMAR}, vocab_size=VOCAB, eos_id=VOCAB - 1)
    asked = [
        replace(request, constraint=Constraint(ConstraintKind.GRAMMAR, "g"))
        for request in asks(**SHAPES[shape])
    ]
    expected: dict[str, tuple[int, ...]] = {}
    for request in asked:
        alone = open_engine(DrafterKind.NONE, 0, constraints=grammars)
        expected |= tokens(finish(alone, request))
    for length in (1, 2, 5, 16, None):
        engine = open_engine(kind, length, own_draft=True, constraints=grammars)
        assert tokens(finish(engine, *asked)) == expected
