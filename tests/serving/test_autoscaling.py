"""How many replicas the load asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.serve.config import AutoscalingConfig, AutoscalingContext

from outrider.serving.autoscaling import LoadPolicy, wanted_replicas

ROOM = {"a": 0.9}


def wanted(
    *tokens: float, current: int, free: Mapping[str, float] = ROOM, target: float = 100
) -> int:
    queued = {str(i): value for i, value in enumerate(tokens)}
    return wanted_replicas(queued, free, target_tokens=target, current=current)


@pytest.mark.parametrize(
    ("tokens", "current", "replicas"),
    [
        ((0,), 1, 1),
        ((0, 0, 0), 3, 1),
        ((100,), 1, 1),
        ((101,), 1, 2),
        ((950, 0), 2, 10),
        ((95, 95, 10), 3, 3),  # two would be at their target: more comes soon
        ((60, 60, 15), 3, 2),
    ],
)
def test_replicas_follow_the_queued_tokens(
    tokens: tuple[float, ...], current: int, replicas: int
) -> None:
    assert wanted(*tokens, current=current) == replicas


def test_where_every_cache_is_full_one_more_is_asked_for() -> None:
    assert wanted(10, 10, current=2, free={"a": 0.05, "b": 0.02}) == 3
    assert wanted(10, 10, current=2, free={"a": 0.05, "b": 0.5}) == 1


@given(st.floats(0, 1e6), st.integers(1, 50))
def test_a_steady_load_comes_to_rest_at_a_number_that_can_carry_it(
    total: float, current: int
) -> None:
    seen = []
    for _ in range(4):
        current = wanted(total, current=current)
        seen.append(current)
    assert len(set(seen[1:])) == 1
    assert current >= total / 100
    assert current <= max(1.0, total / 70 + 1)


def context(metrics: dict[str, dict[Any, float]] | None, *, running: int = 2) -> AutoscalingContext:
    return AutoscalingContext(
        deployment_id=None,
        deployment_name="Replica",
        app_name="release-main",
        current_num_replicas=running,
        target_num_replicas=4,
        running_replicas=[],
        total_num_requests=0,
        total_queued_requests=0,
        aggregated_metrics=metrics,
        raw_metrics=None,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=8,
        policy_state={},
        last_scale_up_time=None,
        last_scale_down_time=None,
        current_time=0.0,
        config=AutoscalingConfig(),
    )


def test_serve_hears_what_the_replicas_told() -> None:
    policy = LoadPolicy(100.0)
    told = {"queued_tokens": {"a": 250.0, "b": 100.0}, "free_blocks_ratio": {"a": 0.5, "b": 0.5}}
    assert policy(context(told)) == (4, {})
    assert policy(context({**told, "free_blocks_ratio": {}})) == (4, {})


@pytest.mark.parametrize("told", [None, {}, {"queued_tokens": {}}])
def test_where_nobody_has_told_yet_the_number_stays(
    told: dict[str, dict[Any, float]] | None,
) -> None:
    assert LoadPolicy(100.0)(context(told)) == (4, {})
