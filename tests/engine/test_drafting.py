"""Where a row is said to take the best token, its sampler would give that and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from outrider.config.schema import EngineSettings
from outrider.core import Constraint, ConstraintKind, Request, SamplingParams
from outrider.engine.drafters import Drafted, Drafter, DraftRow, Offer, Proposal
from outrider.testing import Automaton, AutomatonCompiler, ScriptedModel, finish, toy_engine

VOCAB, EOS = 8, 7
SCORES = torch.from_numpy(np.random.default_rng(5).normal(size=(40, VOCAB)))
ANYTHING = Automaton({0: dict.fromkeys(range(EOS), 0)}, frozenset({0}))


class Asking:
    """Drafts nothing, and notes what each row says behind 0, 1 and 2 drafted tokens."""

    name = "asking"

    def __init__(self) -> None:
        self.said: list[tuple[int, ...]] = []

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        return [Offer(self.name, (0,)) for _ in rows]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        for row in rows:
            told = tuple(n for n in range(3) if row.takes_argmax(n))
            self.said.append(told)
            for num_drafted, scores in ((n, scores) for n in told for scores in SCORES):
                drafted = [1, 2][:num_drafted]
                assert row.sampler(scores, drafted) == (int(scores.argmax()), None)
        return Drafted([Proposal([]) for _ in rows])

    def release(self, row_id: int, tokens: Sequence[int]) -> None: ...


def asked(params: SamplingParams, constraint: Constraint | None = None) -> list[tuple[int, ...]]:
    drafter: Drafter = Asking()
    engine = toy_engine(
        ScriptedModel(lambda prefix: [1.0, *[0.0] * (VOCAB - 1)], vocab_size=VOCAB),
        drafter,
        length=1,
        settings=EngineSettings(),
        constraints=AutomatonCompiler({"x": ANYTHING}, vocab_size=VOCAB, eos_id=EOS),
    )
    finish(engine, Request(request_id="r", prompt_ids=(1,), params=params, constraint=constraint))
    assert isinstance(drafter, Asking)
    return drafter.said


def test_a_greedy_row_takes_the_best_everywhere() -> None:
    assert set(asked(SamplingParams(max_tokens=4))) == {(0, 1, 2)}


def test_while_a_stop_is_forbidden_it_does_not() -> None:
    said = asked(SamplingParams(max_tokens=5, min_tokens=3))
    assert said[:4] == [(), (2,), (1, 2), (0, 1, 2)]  # behind 0, 1, 2 and 3 tokens


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0.5},
        {"logit_bias": {3: 2.0}},
        {"repetition_penalty": 1.2},
        {"presence_penalty": 0.5},
    ],
)
def test_whoever_shapes_the_scores_never_does(more: dict[str, object]) -> None:
    assert set(asked(SamplingParams(max_tokens=4, **more))) == {()}  # type: ignore[arg-type]


def test_nor_does_a_row_with_a_constraint() -> None:
    constraint = Constraint(ConstraintKind.GRAMMAR, "x")
    assert set(asked(SamplingParams(max_tokens=4), constraint)) == {()}
