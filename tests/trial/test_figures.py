"""Figures out of made-up observations, where every value is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from outrider.telemetry.meters import meter_of
from outrider.trial.figures import figures
from outrider.trial.observation import Measured, Observation, Turn
from outrider.trial.record import Figures
from outrider.trial.sums import Terms

BASELINES = {"plain": "", "x": "plain"}


def seen(contender: str, batch: int, **changes: Any) -> Observation:
    base = Observation(
        contender=contender,
        in_flight=1,
        batch=batch,
        case=f"c{batch}",
        kind="chat",
        language="en",
        temperature=0.0,
        num_prompt_tokens=30,
        submitted_s=0.0,
        first_token_s=0.1,
        inter_token_s=0.02,
        total_s=1.0,
        active_s=1.0,
        emitted=50,
        num_rounds=25,
        drafted=40,
        evaluated=30,
        accepted=25,
        num_draft_rounds=10,
    )
    return replace(base, **changes)


def turn(contender: str, batch: int, **changes: Any) -> Turn:
    base = Turn(
        contender=contender,
        in_flight=1,
        batch=batch,
        seconds=1.0,
        emitted=50,
        num_requests=1,
        num_failed=0,
        cpu_s=1.5,
        peak_memory_bytes=1000,
    )
    return replace(base, **changes)


def told(measured: Measured, **terms: Any) -> dict[tuple[str, str], Figures]:
    return {(f.contender, f.group): f for f in figures(measured, BASELINES, Terms(**terms))}


def world(num: int = 6, **changes: Any) -> Measured:
    """`x` takes half of plain decoding's seconds."""
    return Measured(
        observations=tuple(
            one
            for n in range(num)
            for one in (
                seen("plain", n, total_s=2.0, active_s=2.0),
                seen("x", n, parity="equal", **changes),
            )
        ),
        turns=tuple(
            one
            for n in range(num)
            for one in (turn("plain", n, seconds=2.0), turn("x", n, peak_memory_bytes=1500))
        ),
    )


def test_speed_cost_and_memory_are_those_of_turns() -> None:
    found = told(world(), price_per_hour=3.6, cores=2)
    x, plain = found["x", ""], found["plain", ""]
    assert x.metrics["tokens_per_s"] == pytest.approx(50)
    assert x.metrics["plain_tokens_per_s"] == plain.metrics["tokens_per_s"] == pytest.approx(25)
    assert x.ratios["speedup_ratio"].value == x.metrics["speedup_ratio"] == pytest.approx(2)
    assert x.ratios["total_ratio"].value == pytest.approx(0.5)
    assert x.metrics["memory_ratio"] == pytest.approx(1.5)
    assert x.metrics["cpu_ratio"] == pytest.approx(0.75)
    assert x.metrics["cost_per_million_tokens"] == pytest.approx(1e6 / 50 * 0.001)
    assert x.metrics["acceptance_ratio"] == pytest.approx(25 / 30)
    assert x.metrics["tokens_per_round"] == pytest.approx(2)
    assert not plain.ratios
    assert "energy_j" not in x.metrics, "this machine told none"
    assert "cost_per_million_tokens" not in told(world())["x", ""].metrics


def test_each_group_has_its_own_requests() -> None:
    one, two = world(), world(2, emitted=200)
    labels = {"kind": "edit", "language": "de", "temperature": 0.8}
    shifted = tuple(
        replace(o, batch=o.batch + 6, case=f"d{o.batch}", **labels) for o in two.observations
    )
    found = told(Measured(observations=one.observations + shifted, turns=one.turns))
    assert found["x", "language:de"].metrics["num_requests"] == 2
    assert found["x", "temperature:0.8"].metrics["tokens_per_s"] == pytest.approx(200)
    assert found["x", "chat"].ratios["speedup_ratio"].value == pytest.approx(2)
    assert found["x", "edit"].ratios["speedup_ratio"].value == pytest.approx(8)
    assert found["x", "prompt:short"].metrics["num_requests"] == 8
    assert ("x", "prompt:long") not in found


def test_a_prompt_that_was_decoded_again_is_no_further_pair() -> None:
    one = world(8)
    again = [
        replace(o, batch=o.batch + 8, case=f"{o.case}#2", emitted=o.emitted + o.batch)
        for o in one.observations
    ]
    turns = [replace(turn, batch=turn.batch + 8) for turn in one.turns]
    figures_ = told(Measured(observations=(*one.observations, *again), turns=(*one.turns, *turns)))
    chat = figures_["x", "chat"]
    assert chat.metrics["num_requests"] == 16
    assert chat.ratios["speedup_ratio"].num_pairs == 8
    assert {ratio.num_pairs for ratio in figures_["x", ""].ratios.values()} == {8}


def test_tokens_of_failed_requests_are_of_no_use() -> None:
    whole = world(4)
    broken = [
        replace(one, error="timeout") if (one.contender, one.batch) == ("x", 0) else one
        for one in whole.observations
    ]
    turns = [
        replace(one, emitted=0, num_failed=1) if (one.contender, one.batch) == ("x", 0) else one
        for one in whole.turns
    ]
    found = told(Measured(observations=tuple(broken), turns=tuple(turns)))["x", ""]
    assert found.metrics["tokens_per_s"] == pytest.approx(150 / 4)
    assert found.metrics["num_failed/failure:timeout"] == 1
    assert found.metrics["failure_ratio"] == pytest.approx(0.25)
    assert found.metrics["num_emitted_tokens"] == 150
    assert found.ratios["total_ratio"].num_pairs == 3


def test_energy_counts_only_where_every_turn_told_it() -> None:
    whole = world(3)
    all_told = [replace(one, energy_j=10.0, gpu_ratio=0.5) for one in whole.turns]
    found = told(replace(whole, turns=tuple(all_told)))["x", ""].metrics
    assert found["energy_j"] == pytest.approx(30)
    assert found["joules_per_token"] == pytest.approx(0.2)
    assert found["gpu_ratio"] == pytest.approx(0.5)
    some = (*all_told[:-1], whole.turns[-1])
    assert "energy_j" not in told(replace(whole, turns=some))["x", ""].metrics


def test_every_name_is_in_the_catalogue() -> None:
    for one in told(world(), price_per_hour=1.0).values():
        for name in (*one.metrics, *one.ratios):
            assert meter_of(name) is not None, name
