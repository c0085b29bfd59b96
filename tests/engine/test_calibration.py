"""The cost model knows the machine before the first request, and no block is lost by it."""

from __future__ import annotations

import pytest

from outrider.config.schema import EngineSettings
from outrider.core import Request
from outrider.engine.calibration import calibrate
from outrider.engine.cost import CostModel
from outrider.engine.kv_cache import BlockPool
from outrider.testing import ManualClock, ScriptedModel, finish, toy_engine


def model(clock: ManualClock, **shape: int) -> ScriptedModel:
    return ScriptedModel(
        lambda prefix: [0.0, 1.0, 0.0],
        vocab_size=3,
        clock=clock,
        cost=lambda rows, tokens: 0.02 + 0.003 * tokens,
        **shape,
    )


def test_costs_are_learnt_from_forwards_really_run() -> None:
    clock = ManualClock()
    cost = CostModel({})
    calibrate(model(clock), BlockPool(256, 4), cost, clock, max_rows=4)
    for rows, tokens in ((1, 1), (1, 16), (4, 4), (4, 32)):
        assert cost.predict(rows, tokens) == pytest.approx(0.02 + 0.003 * tokens, rel=0.15)


def test_a_small_pool_or_context_limits_the_grid() -> None:
    clock = ManualClock()
    pool = BlockPool(4, 4)
    calibrate(model(clock, context_length=16, num_blocks=4), pool, CostModel({}), clock, max_rows=8)
    assert pool.num_free == 4


def test_a_short_context_limits_the_grid_whatever_the_pool_holds() -> None:
    clock = ManualClock()
    short = model(clock, context_length=16)  # raises where a row grows beyond it
    calibrate(short, BlockPool(256, 4), CostModel({}), clock, max_rows=8)


def test_an_engine_serves_as_usual_afterwards() -> None:
    clock = ManualClock()
    engine = toy_engine(model(clock), clock=clock, settings=EngineSettings(max_rows=2))
    engine.calibrate()
    engine.check_integrity()
    assert len(finish(engine, Request(request_id="r", prompt_ids=(1,)))["r"].token_ids) == 128
