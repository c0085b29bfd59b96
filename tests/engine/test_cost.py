"""The cost model finds out by itself what the machine is like."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.core import UserError
from outrider.engine.cost import CostModel, identity_digest

IDENTITY = {"hardware": "2 cores", "model": "abc", "dtype": "bfloat16"}
Machine = Callable[[int, int], float]


def tiles(rows: int, tokens: int) -> float:
    """Matrix tiles: tokens of one row are nearly free, those of eight rows are not."""
    if rows == 1:
        return 0.025 + 0.0002 * (tokens - 1)
    return 0.0320 + 0.000625 * (min(tokens, 32) - 8) + 0.0004 * max(tokens - 32, 0)


def no_tiles(_rows: int, tokens: int) -> float:
    return 0.022 + 0.0012 * tokens


def taught(machine: Machine, rounds: int, straggler_ratio: float = 0.0) -> CostModel:
    """Rounds of one and of eight rows, 10 % lognormal noise, some ten times too slow."""
    rng, model = random.Random(5), CostModel(IDENTITY)
    for index in range(rounds):
        rows = 8 if index % 2 else 1
        tokens = rows * rng.randint(1, 8 if rows == 8 else 16)
        seconds = machine(rows, tokens) * math.exp(rng.gauss(0.0, 0.1))
        late = 10.0 if rng.random() < straggler_ratio else 1.0
        model.observe(rows, tokens, 0, seconds * late)
    return model


@pytest.mark.parametrize("machine", [tiles, no_tiles])
@pytest.mark.parametrize("straggler_ratio", [0.0, 0.05])
def test_either_machine_is_found_through_noise_and_stragglers(
    machine: Machine, straggler_ratio: float
) -> None:
    model = taught(machine, 600, straggler_ratio)
    for rows, tokens in ((1, 1), (1, 8), (1, 16), (8, 8), (8, 32), (8, 64)):
        assert model.predict(rows, tokens) == pytest.approx(machine(rows, tokens), rel=0.12)


def test_the_slope_tells_the_machines_apart() -> None:
    flat, steep = taught(tiles, 600), taught(no_tiles, 600)
    assert flat.predict(1, 16) / flat.predict(1, 1) < 1.25
    assert steep.predict(1, 16) / steep.predict(1, 1) > 1.5


def test_one_observation_sets_the_level_everywhere() -> None:
    model = CostModel(IDENTITY)
    shape = model.predict(8, 32) / model.predict(1, 1)
    model.observe(1, 1, 0, 2.0)
    assert model.predict(1, 1) == pytest.approx(2.0, rel=0.05)
    assert model.predict(8, 32) / 2.0 == pytest.approx(shape, rel=0.2)


def test_a_machine_that_slows_down_is_followed() -> None:
    model = taught(tiles, 400)
    for _ in range(60):
        model.observe(1, 1, 0, 0.050)
    assert model.predict(1, 1) == pytest.approx(0.050, rel=0.1)


def test_draft_steps_have_a_cost_of_their_own() -> None:
    model, rng = CostModel(IDENTITY), random.Random(1)
    for index in range(400):
        steps = index % 5
        noise = math.exp(rng.gauss(0.0, 0.05))
        model.observe(1, 1 + steps, steps, (0.025 + 0.006 * steps) * noise)
    step_s = (model.predict(1, 5, 4) - model.predict(1, 5, 0)) / 4
    assert step_s == pytest.approx(0.006, rel=0.25)


ROUNDS = st.tuples(st.integers(1, 64), st.integers(1, 16), st.integers(0, 4), st.floats(1e-4, 10.0))


@settings(max_examples=40, deadline=None)
@given(st.lists(ROUNDS, max_size=25), st.integers(1, 80))
def test_predictions_are_positive_and_never_fall_with_tokens(
    rounds: list[tuple[int, int, int, float]], rows: int
) -> None:
    model = CostModel(IDENTITY)
    for observed_rows, each, steps, seconds in rounds:
        model.observe(observed_rows, observed_rows * each, steps, seconds)
    for table in (model, model.optimistic()):
        seconds_of = table.predict_range(rows, rows, 1200, 0)
        assert seconds_of[0] > 0.0
        assert all(b >= a - 1e-12 for a, b in itertools.pairwise(seconds_of))
        assert table.predict_range(rows, rows, 1, 3)[0] > seconds_of[0]


def test_a_range_is_made_of_single_predictions() -> None:
    model = taught(tiles, 100)
    singles = [model.predict(3, tokens, 2) for tokens in range(3, 140)]
    assert model.predict_range(3, 3, 137, 2) == pytest.approx(singles)


def test_optimism_matters_where_nothing_was_seen_only() -> None:
    model = CostModel(IDENTITY)
    for _ in range(200):
        model.observe(1, 1, 0, 0.025)
    hopeful = model.optimistic()
    assert hopeful.predict_range(1, 1, 1, 0)[0] > 0.9 * model.predict(1, 1)
    assert hopeful.predict_range(1, 64, 1, 0)[0] < 0.8 * model.predict(1, 64)


def test_doubt_falls_with_observation() -> None:
    model = CostModel(IDENTITY)
    before = model.doubt(1, 1)
    for _ in range(5):
        model.observe(1, 1, 0, 0.025)
    assert model.doubt(1, 1) < 0.08 < before


def test_a_clock_that_stands_still_teaches_nothing() -> None:
    model = CostModel(IDENTITY)
    before = model.predict(1, 4)
    model.observe(1, 4, 0, 0.0)
    assert (model.predict(1, 4), model.num_observed) == (before, 0)


def test_a_saved_table_predicts_the_same_and_goes_on_learning(tmp_path: Path) -> None:
    model = taught(no_tiles, 200)
    path = tmp_path / "new" / "cost.json"
    model.save(path)
    again = CostModel.load(path, IDENTITY)
    assert again.predict_range(8, 8, 100, 1) == pytest.approx(model.predict_range(8, 8, 100, 1))
    for _ in range(40):
        again.observe(1, 1, 0, 0.1)
    assert again.predict(1, 1) == pytest.approx(0.1, rel=0.1)
    assert [entry.name for entry in path.parent.iterdir()] == ["cost.json"]


def test_a_foreign_table_is_refused_by_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    CostModel(IDENTITY).save(path)
    with pytest.raises(UserError, match=r"dtype=bfloat16 \(here float32\)") as refused:
        CostModel.load(path, {**IDENTITY, "dtype": "float32"})
    assert "model" not in str(refused.value).split("measured for")[1]
    with pytest.raises(UserError, match=r"draft=nothing \(here xyz\)"):
        CostModel.load(path, {**IDENTITY, "draft": "xyz"})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1, "identity": {}}'])
def test_a_broken_table_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cost.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"cost\.json: not a cost table"):
        CostModel.load(path, IDENTITY)


def test_a_missing_table_and_one_of_another_grid_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    with pytest.raises(UserError, match="cannot be read"):
        CostModel.load(path, IDENTITY)
    CostModel(IDENTITY).save(path)
    table = json.loads(path.read_text())
    path.write_text(json.dumps({**table, "rows": [1, 2]}))
    with pytest.raises(UserError, match="of this version"):
        CostModel.load(path, IDENTITY)


def test_a_digest_names_what_was_measured() -> None:
    shuffled = dict(reversed(IDENTITY.items()))
    assert identity_digest(IDENTITY) == identity_digest(shuffled)
    assert identity_digest(IDENTITY) != identity_digest({**IDENTITY, "dtype": "float32"})
