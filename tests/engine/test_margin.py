"""How clear a choice was, asked of a running engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from outrider.core import Completion, Request, SamplingParams
from outrider.engine.margin import rivals_margin, top2_margin
from outrider.engine.runner import Runner
from outrider.testing import ScriptedModel, toy_engine

GAP = 0.25


def logits(prefix: Sequence[int], shift: float = 0.0) -> list[float]:
    """Token 2 is `GAP` ahead of token 4; `shift` is what another rounding makes of token 4."""
    return [0.0, -1.0, 3.0, -2.0, 3.0 - GAP + shift, -9.0]


def open_runner(shift: float = 0.0) -> Runner:
    model = ScriptedModel(lambda prefix: logits(prefix, shift), vocab_size=6)
    return Runner(toy_engine(model))


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = open_runner()
    yield runner
    runner.close()


def request(**params: object) -> Request:
    return Request(
        request_id="r",
        prompt_ids=(0, 1),
        params=SamplingParams(max_tokens=12, **params),  # type: ignore[arg-type]
    )


def test_a_greedy_margin_is_that_of_the_two_largest_logits(runner: Runner) -> None:
    assert top2_margin(runner.submit, request(), (2, 2)) == pytest.approx(GAP)


@pytest.mark.parametrize(
    "params", [{"logit_bias": {1: 2.0}}, {"presence_penalty": 0.5}, {"min_tokens": 9}]
)
def test_a_margin_that_decided_nothing_is_infinite(
    runner: Runner, params: dict[str, object]
) -> None:
    assert top2_margin(runner.submit, request(**params), (2,)) == float("inf")
    sampled = request(temperature=0.8, **params)
    assert rivals_margin(runner.submit, sampled, (2,), (2, 4)) == float("inf")


@pytest.mark.parametrize("params", [{"top_p": 0.9}, {"top_k": 2}, {"min_p": 0.1}, {}])
def test_filters_and_greedy_choices_have_no_sampled_margin(
    runner: Runner, params: dict[str, object]
) -> None:
    one = request(temperature=0.8, **params) if params else request()
    assert rivals_margin(runner.submit, one, (2,), (2, 4)) == float("inf")


def answer(runner: Runner, asked: Request) -> Completion:
    return runner.submit(asked).result()


def test_sampled_outputs_part_exactly_where_rounding_reaches_the_margin() -> None:
    """A shift of one logit turns the choice at positions where the rivals were nearer than it."""
    shift, num_parted = 0.4, 0
    plain, other = open_runner(), open_runner(shift)
    for seed in range(30):
        asked = request(temperature=0.7, seed=seed, ignore_eos=True)
        ours, theirs = answer(plain, asked).token_ids, answer(other, asked).token_ids
        for position, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
            gap = rivals_margin(plain.submit, asked, ours[:position], (mine, its))
            if mine != its:
                assert 4 in (mine, its)
                assert gap <= shift + 1e-9
                num_parted += 1
                break
            if mine == 2:
                assert rivals_margin(plain.submit, asked, ours[:position], (2, 4)) >= shift - 1e-9
    assert num_parted > 5
    plain.close()
    other.close()
