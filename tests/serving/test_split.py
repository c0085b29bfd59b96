"""P18: sticky and monotone, and the share that was asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.serving.split import Arm, Plan, choose

KEYS = [f"session-{i}" for i in range(4000)]


def candidates(weight: float) -> set[str]:
    plan = Plan(stable="a", candidate="b", weight=weight)
    return {key for key in KEYS if choose(plan, key).arm is Arm.CANDIDATE}


def test_who_is_in_the_candidate_stays_there_while_the_weight_grows() -> None:
    before: set[str] = set()
    for weight in (0.0, 0.05, 0.25, 0.5, 1.0):
        now = candidates(weight)
        assert before <= now
        assert abs(len(now) / len(KEYS) - weight) < 0.03
        before = now
    assert before == set(KEYS)


@given(st.text(), st.floats(0, 1))
def test_a_key_decides_alone_and_the_release_goes_with_the_arm(key: str, weight: float) -> None:
    plan = Plan(stable="a", candidate="b", weight=weight)
    choice = choose(plan, key)
    assert choice == choose(plan, key)
    assert choice.release == {Arm.STABLE: "a", Arm.CANDIDATE: "b"}[choice.arm]
    assert choose(Plan(stable="a", weight=weight), key).release == "a"
