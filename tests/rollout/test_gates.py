"""The gates, and how the chance of error is divided among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outrider.config.limits import problems
from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.gates import kind_levels, levels, num_stages, ratios_on, shadow_levels
from outrider.rollout.sums import MOST_KINDS

GATES = GateSettings()


@pytest.mark.parametrize("shadow_share", [0.0, 1.0])
@pytest.mark.parametrize("off", [{}, {"min_acceptance_ratio": 0.0, "max_total_ratio": 0.0}])
def test_all_chances_of_a_false_rollback_together_are_at_most_alpha(
    shadow_share: float, off: dict[str, float]
) -> None:
    gates, plan = replace(GATES, **off), PlanSettings(shadow_share=shadow_share)
    stages, num = num_stages(plan), len(ratios_on(gates)) + 1
    step = num * (levels(gates, stages).fail + MOST_KINDS * kind_levels(gates, stages).fail)
    shadow = shadow_levels(gates, stages).fail if shadow_share else 0.0
    assert shadow + len(plan.weights) * step == pytest.approx(gates.alpha)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_first_token_ratio", 1.0),
        ("min_speed_ratio", 1.0),
        ("max_error_increase", 0.0),
        ("alpha", 0.5),
    ],
)
def test_a_gate_that_equal_releases_would_never_pass_is_refused(name: str, value: float) -> None:
    assert [key for key, _ in problems(replace(GATES, **{name: value}))] == [name]
    assert not list(problems(GATES))
