"""Whole rollouts over a service in memory: how they end, and what is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rollout_stand import (
    ALL,
    CANDIDATE,
    GOOD_WAY,
    PLAN,
    TICK_S,
    URL,
    Stand,
    another_process,
    sqlite_stand,
)

from outrider.config.schema import OnStall
from outrider.core import Fault, UserError
from outrider.rollout.aliases import Aliases
from outrider.rollout.command import Verb
from outrider.rollout.operator import see_through
from outrider.rollout.phase import Phase
from outrider.rollout.store import LostError
from outrider.serving.split import Arm, Plan, choose
from outrider.testing import Effect, MemoryRegistry
from outrider.tracking.registry import Alias
from outrider.tracking.tracker import RunStatus

SLOW = {"candidate": Effect(tokens_per_s=28.0)}
WRONG = {"candidate": Effect(mismatch_share=0.2)}
FAILING = {"candidate": Effect(error_share=0.3)}


def test_a_good_candidate_is_promoted_step_by_step(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, gates=ALL)
    stand.begin()
    assert stand.run().phase is Phase.PROMOTED
    assert stand.way() == GOOD_WAY
    assert stand.service.plan.stable == "candidate"
    assert stand.service.plan.candidate is None
    assert set(stand.service.state().releases) == {"candidate"}
    assert stand.aliases() == {"champion": 2, "previous": 1}
    assert stand.store.active(URL) is None
    assert stand.store.unfinished(URL) is None


def test_a_move_keeps_what_its_step_had_to_show(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, WRONG, gates=ALL)
    stand.begin()
    stand.run()
    assert {one["likeness"] for one in stand.moves()[-1].differing} == {"mismatch"}
    assert any("mismatch: request" in text for text in stand.told)

    good = sqlite_stand(tmp_path / "good", gates=ALL)
    good.begin()
    good.run()
    (first,) = (move for move in good.moves() if (move.phase.value, move.step) == ("canary", 1))
    assert first.achieved_ratio == pytest.approx(PLAN.weights[0], abs=0.1)


def test_stable_is_there_until_its_time_behind_the_promotion_is_over(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.run()
    calls = [call for call in stand.service.calls if not call.startswith("ask")]
    assert calls.index("deploy candidate") < calls.index("plan stable 0")
    assert calls[-1] == "remove stable"
    assert calls.index("plan candidate -") < calls.index("remove stable")


@pytest.mark.parametrize(
    ("effects", "phases"),
    [(WRONG, {"shadow"}), (SLOW, {"shadow", "canary"}), (FAILING, {"shadow"})],
)
def test_a_bad_candidate_is_taken_back_by_itself(
    tmp_path: Path, effects: dict[str, Effect], phases: set[str]
) -> None:
    stand = sqlite_stand(tmp_path, effects, gates=ALL)
    stand.begin()
    assert stand.run().phase is Phase.ROLLED_BACK
    assert {move.phase.value for move in stand.moves()[2:-1]} == phases
    assert stand.moves()[-1].evidence
    assert stand.service.plan.stable == "stable"
    assert stand.service.plan.candidate is None
    assert set(stand.service.state().releases) == {"stable"}
    assert stand.aliases() == {"champion": 1, "challenger": 2}


def test_every_step_begins_without_evidence_but_the_confirmation(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    for phase, num in (("shadow", 0), ("canary", 0)):
        stand.until(controller, phase)
        sums = stand.store.get(stand.rollout_id).sums
        assert (sums.num(Arm.STABLE), sums.num(Arm.CANDIDATE)) == (num, num)
    stand.until(controller, "confirming")
    assert stand.store.get(stand.rollout_id).sums.num(Arm.CANDIDATE) >= PLAN.min_samples


def test_an_alias_that_was_not_read_back_is_taken_back_too(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    status = replace(stand.begin().status, phase=Phase.PROMOTING)
    aliases = Aliases(stand.store, HalfAway(stand.registry))
    with pytest.raises(Fault):
        aliases.settle(status)
    assert stand.aliases()["champion"] == 2
    Aliases(stand.store, stand.registry).settle(replace(status, phase=Phase.ABORTED))
    assert stand.aliases()["champion"] == 1


class HalfAway(MemoryRegistry):
    """A registry that takes an alias, and whose answer is lost."""

    def __init__(self, registry: MemoryRegistry) -> None:
        super().__init__()
        self.__dict__ |= registry.__dict__
        self._give = registry.give

    def give(self, alias: Alias, number: int) -> None:
        self._give(alias, number)
        raise Fault("the registry is away")


def test_who_is_waited_for_is_said(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.controller(process=another_process(7)).tick()
    with pytest.raises(UserError, match="process 7 on machine-7 controls its rollout already"):
        stand.controller().run(tick_s=TICK_S, patience_s=3.0, pause=stand.clock.advance)
    assert stand.told.count("process 7 on machine-7 controls it: waiting until that leaves") == 1


@pytest.mark.parametrize("phase", ["warming", "canary"])
def test_a_service_begun_anew_with_another_release_ends_the_rollout(
    tmp_path: Path, phase: str
) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.until(stand.controller(), phase)
    stand.service.begin_anew("another")
    status = stand.run()
    assert (status.phase, status.reason) == (
        Phase.FAILED,
        "the service was begun anew with another (fingerprint-) in place of stable (fingerprint-)",
    )
    assert stand.service.plan == Plan(stable="another")
    assert set(stand.service.state().releases) == {"another"}
    assert stand.store.unfinished(URL) is None
    stand.begin()  # and it may be tried beside that
    assert stand.run().phase is Phase.PROMOTED


@pytest.mark.parametrize("phase", ["promoting", "keeping"])
def test_what_is_promoted_is_stable_again_on_a_service_begun_anew(
    tmp_path: Path, phase: str
) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.until(stand.controller(), phase)
    stand.service.begin_anew("another")
    assert stand.run().phase is Phase.PROMOTED
    assert stand.service.plan.stable == "candidate"
    assert set(stand.service.state().releases) == {"candidate"}


@pytest.mark.parametrize(
    ("stable", "end"), [("", Phase.ROLLED_BACK), ("the traffic changed", Phase.PROMOTED)]
)
def test_a_fall_of_stable_too_is_the_traffics_doing(
    tmp_path: Path, stable: str, end: Phase
) -> None:
    effects = {"candidate": Effect(fallen="nothing accepted"), "stable": Effect(fallen=stable)}
    stand = sqlite_stand(tmp_path, effects)
    stand.begin()
    assert stand.run().phase is end


def test_a_failing_candidate_loses_its_traffic_within_the_look_that_finds_it(
    tmp_path: Path,
) -> None:
    """P16. The shadow is left out, so that the errors are users'."""
    plan = replace(PLAN, shadow_share=0.0)
    stand = sqlite_stand(tmp_path, FAILING, plan, ALL)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    assert stand.service.plan.weight == 0.25
    stand.until(controller, "rolled_back")
    assert stand.service.plan.candidate is None
    assert "remove stable" not in stand.service.calls


def test_three_requests_of_which_one_fails_decide_nothing(tmp_path: Path) -> None:
    """P15. A request in 20 s, so that few are there when the least time is over."""
    plan = replace(PLAN, shadow_share=0.0, max_s=100.0)
    stand = Stand(f"sqlite:///{tmp_path}/r.db", FAILING, plan=plan, gates=ALL, per_s=0.3)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    for _ in range(20):
        stand.clock.advance(TICK_S)
        assert controller.tick().phase is Phase.CANARY
    rollout = stand.store.get(stand.rollout_id)
    assert rollout.status.step == 0
    assert rollout.judgement.verdict == "inconclusive"


def test_a_stall_is_told_once_and_held(tmp_path: Path) -> None:
    plan = replace(PLAN, max_s=20.0, on_stall=OnStall.HOLD)
    stand = Stand(f"sqlite:///{tmp_path}/r.db", plan=plan, per_s=0.0)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "shadow")
    for _ in range(30):
        stand.clock.advance(TICK_S)
        controller.tick()
    assert [phase for phase, *_ in stand.way()] == ["deploying", "warming", "shadow", "shadow"]


def test_a_candidate_that_cannot_start_has_failed(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, {"candidate": Effect(failure="no room for 3 replicas")})
    stand.begin()
    status = stand.run()
    assert status.phase is Phase.FAILED
    assert "no room for 3 replicas" in status.reason


def test_no_request_meets_a_candidate_that_is_not_ready(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, {"candidate": Effect(starts_in_s=30.0)})
    stand.begin()
    assert stand.run().phase is Phase.PROMOTED


def test_what_was_aborted_is_tried_again_and_what_was_rolled_back_needs_force(
    tmp_path: Path,
) -> None:
    """P17."""
    stand = sqlite_stand(tmp_path, SLOW, gates=ALL)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "shadow")
    stand.order(Verb.ABORT, "lunch")
    assert stand.run().phase is Phase.ABORTED
    stand.begin()
    assert stand.run().phase is Phase.ROLLED_BACK
    with pytest.raises(UserError, match="was rolled back"):
        stand.begin()
    stand.begin(force=True)


def test_an_operators_command_is_recorded_with_who_when_and_why(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "shadow")
    stand.order(Verb.PAUSE, "the auditors are here")
    controller.tick()
    move = stand.moves()[-1]
    assert move.who == "ada@ship"
    assert "the auditors are here" in move.reason
    (command,) = stand.store.commands(stand.rollout_id)
    assert (command.who, command.at_s) == ("ada@ship", stand.clock.time())
    assert stand.store.commands(stand.rollout_id, waiting=True) == ()


def test_a_command_is_taken_by_its_own_process_where_nobody_controls(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.until(stand.controller(), "canary")
    stand.order(Verb.ABORT)
    (command,) = stand.store.commands(stand.rollout_id, waiting=True)
    after = see_through(command, stand.controller(), tick_s=TICK_S, pause=stand.clock.advance)
    assert after.status.phase is Phase.ABORTED
    assert stand.service.plan.candidate is None


def test_an_abort_behind_the_promotion_gives_the_old_champion_its_name_again(
    tmp_path: Path,
) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    stand.until(stand.controller(), "keeping")
    assert stand.aliases()["champion"] == 2
    stand.order(Verb.ABORT, "the phones ring")
    assert stand.run().phase is Phase.ABORTED
    assert stand.aliases()["champion"] == 1
    assert stand.service.plan.stable == "stable"
    assert set(stand.service.state().releases) == {"stable"}


def test_while_the_service_is_away_nothing_moves_and_it_is_told_once(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    plan = stand.service.plan
    stand.service.is_away = True
    for _ in range(5):
        stand.clock.advance(TICK_S)
        assert controller.tick().phase is Phase.CANARY
    assert stand.service.plan == plan
    assert len([line for line in stand.told if "away" in line]) == 1
    stand.service.is_away = False
    assert stand.run().phase is Phase.PROMOTED


def test_a_gateway_that_forgot_gets_candidate_and_plan_again(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    before = stand.service.plan
    stand.service.restart(forgets=True)
    assert stand.service.plan == Plan(stable="stable")
    controller.tick()
    controller.tick()
    assert stand.service.plan == before
    assert stand.run().phase is Phase.PROMOTED


def test_a_candidate_that_starts_anew_gets_no_weight_before_it_is_ready(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path, {"candidate": Effect(starts_in_s=10.0)})
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    stand.service.restart(forgets=True)
    for _ in range(4):
        controller.tick()
        assert stand.service.plan.candidate is None
        stand.clock.advance(TICK_S)
    stand.clock.advance(TICK_S)
    controller.tick()
    controller.tick()
    assert stand.service.plan.weight == 0.25


def test_a_key_in_the_candidate_stays_there_as_the_weight_grows(tmp_path: Path) -> None:
    """P18, over what the service was told."""
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    keys = [f"session {number}" for number in range(200)]
    inside: set[str] = set()
    for phase, weight in (("canary", 0.25), ("confirming", 0.5)):
        stand.until(controller, phase)
        stand.service.restart(forgets=False)
        now = {key for key in keys if choose(stand.service.plan, key).arm is Arm.CANDIDATE}
        assert stand.service.plan.weight == weight
        assert inside < now
        inside = now


def test_one_controller_at_a_time(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    first = stand.controller(process=another_process(1))
    second = stand.controller(process=another_process(2))
    first.tick()
    with pytest.raises(UserError, match="process 1 on machine-1 controls"):
        second.run(tick_s=TICK_S, pause=stand.clock.advance)
    stand.clock.advance(61.0)  # the first one is not heard of any more
    second.tick()
    with pytest.raises(LostError):
        first.tick()


def test_one_active_rollout_of_a_service(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    other = replace(CANDIDATE, name="other", fingerprint="fingerprint-of-other", version=0)
    with pytest.raises(UserError, match="is active"):
        stand.begin(other)


def test_a_newer_release_takes_the_place_of_one_that_has_stalled(tmp_path: Path) -> None:
    plan = replace(PLAN, max_s=20.0)
    stand = Stand(f"sqlite:///{tmp_path}/r.db", plan=plan, per_s=0.0)
    old = stand.begin().status.rollout_id
    controller = stand.controller()
    stand.until(controller, "shadow")
    for _ in range(15):
        stand.clock.advance(TICK_S)
        controller.tick()
    other = replace(CANDIDATE, name="other", fingerprint="fingerprint-of-other", version=0)
    stand.begin(other)
    with pytest.raises(LostError):  # its controller finds out and leaves
        controller.tick()
    assert stand.store.get(old).status.phase is Phase.SUPERSEDED
    stand.until(stand.controller(), "shadow")
    assert set(stand.service.state().releases) == {"stable", "other"}
    assert stand.tracker.runs[0].status is RunStatus.KILLED


def test_a_plan_of_another_database_is_not_fought_over(tmp_path: Path) -> None:
    stand = sqlite_stand(tmp_path)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    foreign = Plan(stable="stable", salt="somebody", revision=1000)
    stand.service.put_plan(foreign)
    before = stand.way()
    for _ in range(10):
        stand.clock.advance(TICK_S)
        controller.tick()
    assert stand.service.plan == foreign
    assert stand.way() == before
    assert any("another database" in line for line in stand.told)
