"""The rollouts of a gateway, seen and ordered in the database that a real controller writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import pytest
from rollout_stand import PLAN, TICK_S, URL, Stand, another_process, sqlite_stand
from servers import Postgres

from outrider.config.schema import PlanSettings
from outrider.console.order import LONGEST_NAME, Order
from outrider.console.ports import RolloutsSeen
from outrider.console.rollouts import MOST_PAST, StoredRollouts
from outrider.core import Fault, UserError
from outrider.rollout.command import Verb
from outrider.rollout.lease import LEASE_S
from outrider.rollout.phase import Phase
from outrider.rollout.store import SETTLED
from outrider.tracking.store_uri import sqlite_uri


def rollouts_of(folder: Path, stand: Stand | None = None, url: str = URL) -> StoredRollouts:
    database = sqlite_uri(folder / "rollouts.db")
    return StoredRollouts(database, url, stand.clock if stand else None)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return sqlite_stand(tmp_path)


def test_without_a_database_there_are_no_rollouts_and_none_is_made(tmp_path: Path) -> None:
    rollouts = rollouts_of(tmp_path / "nowhere")
    assert rollouts.look() == RolloutsSeen()
    with pytest.raises(UserError, match="abort: this service has no active rollout"):
        rollouts.order(Order(verb=Verb.ABORT, rollout_id="one"))
    assert not list(tmp_path.iterdir())


def test_a_service_without_rollouts_has_none_beside_another_s(tmp_path: Path, stand: Stand) -> None:
    stand.begin()
    assert rollouts_of(tmp_path, stand, "http://elsewhere").look() == RolloutsSeen()
    assert rollouts_of(tmp_path, stand, f"{URL}/").look().newest is not None


def test_a_look_follows_the_controller_to_the_end(tmp_path: Path, stand: Stand) -> None:
    rollouts = rollouts_of(tmp_path, stand)
    stand.begin()
    controller = stand.controller(process=another_process(1))
    phases = []
    for phase in ("shadow", "canary", "promoted"):
        stand.until(controller, phase)
        seen = rollouts.look()
        assert seen.newest is not None
        phases.append((seen.newest.phase, seen.newest.is_over, dict(seen.num_by_phase)))
        assert seen.newest.moves == stand.moves()
        assert seen.newest.run_id == stand.store.get(stand.rollout_id).status.run_id
    assert phases == [
        (Phase.SHADOW, False, {Phase.SHADOW: 1}),
        (Phase.CANARY, False, {Phase.CANARY: 1}),
        (Phase.PROMOTED, True, {Phase.PROMOTED: 1}),
    ]
    assert rollouts.look().past == ()  # it is the one that is shown


def test_evidence_is_that_of_the_step(tmp_path: Path, stand: Stand) -> None:
    rollouts = rollouts_of(tmp_path, stand)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    stand.clock.advance(TICK_S)
    controller.tick()
    newest = rollouts.look().newest
    assert newest is not None
    assert "failure_ratio" in {found.figure for found in newest.findings}
    assert newest.findings == stand.store.get(stand.rollout_id).judgement.findings
    assert newest.achieved_ratio == pytest.approx(PLAN.weights[0], abs=0.1)


def test_what_ended_before_is_past_newest_first_and_only_a_few(
    tmp_path: Path, stand: Stand
) -> None:
    ids = []
    for _ in range(MOST_PAST + 3):
        begun = stand.begin()
        over = replace(begun.status, phase=Phase.ABORTED, reason="aborted by ada@ship")
        stand.store.commit(replace(begun, status=over))
        stand.store.keep(stand.rollout_id, SETTLED, SETTLED)
        ids.append(stand.rollout_id)
        stand.clock.advance(TICK_S)
    seen = rollouts_of(tmp_path, stand).look()
    assert seen.newest is not None
    assert seen.newest.rollout_id == ids[-1]
    assert [each.rollout_id for each in seen.past] == ids[-2 : -2 - MOST_PAST : -1]
    assert seen.past[0].reason == "aborted by ada@ship"
    assert seen.num_by_phase == {Phase.ABORTED: MOST_PAST + 3}


def test_whether_somebody_controls_it_is_told_until_the_lease_is_over(
    tmp_path: Path, stand: Stand
) -> None:
    rollouts = rollouts_of(tmp_path, stand)
    stand.begin()
    told = []
    for wait_s in (0.0, LEASE_S - 1.0, 2.0):
        if not told:
            stand.controller(process=another_process(1)).tick()
        stand.clock.advance(wait_s)
        newest = rollouts.look().newest
        assert newest is not None
        told.append(newest.is_controlled)
    assert told == [True, True, False]


def test_an_order_is_taken_by_the_real_controller(tmp_path: Path, stand: Stand) -> None:
    rollouts = rollouts_of(tmp_path, stand)
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "canary")
    said = rollouts.order(
        Order(verb=Verb.PAUSE, rollout_id=stand.rollout_id, who="Ada", why="lunch")
    )
    assert said == (
        "pause is written down for the rollout of candidate: it is taken at the next look"
    )
    controller.tick()
    paused = rollouts.look().newest
    assert paused is not None
    assert (paused.is_paused, paused.reason) == (True, "paused by Ada: lunch")
    assert Verb.RESUME in paused.verbs

    with pytest.raises(UserError) as refused:
        rollouts.order(Order(verb=Verb.PAUSE, rollout_id=stand.rollout_id, who="Ada"))
    assert str(refused.value) == (
        "pause: not now, the rollout of candidate is paused in canary; "
        "it takes abort, resume, promote"
    )

    rollouts.order(Order(verb=Verb.ABORT, rollout_id=stand.rollout_id))
    assert controller.tick().phase is Phase.ABORTED
    ended = rollouts.look().newest
    assert ended is not None
    assert (ended.reason, ended.verbs) == ("aborted by console", ())
    with pytest.raises(UserError, match="abort: this service has no active rollout"):
        rollouts.order(Order(verb=Verb.ABORT, rollout_id=stand.rollout_id))


def test_an_order_for_one_that_is_over_is_none_for_the_next(tmp_path: Path, stand: Stand) -> None:
    rollouts = rollouts_of(tmp_path, stand)
    stand.begin()
    before = stand.rollout_id
    rollouts.order(Order(verb=Verb.ABORT, rollout_id=before, who="Ada"))
    stand.run()
    stand.begin()
    with pytest.raises(UserError) as refused:
        rollouts.order(Order(verb=Verb.ABORT, rollout_id=before, who="Ben"))
    assert str(refused.value) == (
        f"abort: rollout {before} is over; the rollout of candidate, {stand.rollout_id}, is "
        "active now and was asked nothing"
    )
    assert stand.store.commands(stand.rollout_id) == ()


def test_what_nobody_takes_now_says_so_and_waits(tmp_path: Path, stand: Stand) -> None:
    stand.begin()
    rollouts = rollouts_of(tmp_path, stand)
    assert "nobody controls it now" in rollouts.order(
        Order(verb=Verb.ABORT, rollout_id=stand.rollout_id, who="Ada")
    )
    assert stand.run().phase is Phase.ABORTED


def test_a_name_and_a_reason_are_a_short_line_each(tmp_path: Path, stand: Stand) -> None:
    stand.begin()
    rollouts = rollouts_of(tmp_path, stand)
    rollouts.order(
        Order(
            verb=Verb.PAUSE,
            rollout_id=stand.rollout_id,
            who="A\x1b[31mda\n" + "x" * 500,
            why="one\n\ttwo\x00\ud800 ü",
        )
    )
    (command,) = stand.store.commands(stand.rollout_id)
    assert command.who == f"A [31mda {'x' * 500}"[:LONGEST_NAME]
    assert command.why == "one two ü"


def test_a_database_that_is_none_of_ours_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "rollouts.db").write_text("this is no database, and long enough to be one" * 40)
    with pytest.raises(Fault, match="file is not a database") as broken:
        rollouts_of(tmp_path).look()
    assert "\n" not in str(broken.value)


def test_a_folder_in_its_place_is_named_by_the_console_s_own_key(tmp_path: Path) -> None:
    (tmp_path / "rollouts.db").mkdir()
    with pytest.raises(UserError, match=r"^console\.database="):
        rollouts_of(tmp_path).look()


def test_a_database_that_comes_later_is_found(tmp_path: Path) -> None:
    rollouts = rollouts_of(tmp_path)
    assert rollouts.look().newest is None
    sqlite_stand(tmp_path, plan=PlanSettings()).begin()
    assert rollouts.look().newest is not None


def test_on_postgresql_it_is_the_same_and_an_outage_is_one_line(postgres: Postgres) -> None:
    url = postgres.uri("console")
    rollouts = StoredRollouts(url, URL)
    assert rollouts.look() == RolloutsSeen()
    stand = Stand(url)
    stand.begin()
    rollouts.order(Order(verb=Verb.PAUSE, rollout_id=stand.rollout_id, who="Ada"))
    assert stand.controller().tick().is_paused
    newest = rollouts.look().newest
    assert newest is not None
    assert newest.is_paused
    stand.store.database.close()
    postgres.kill()
    with pytest.raises(Fault, match="the database of rollouts") as away:
        rollouts.look()
    assert "\n" not in str(away.value)
    postgres.start()
    assert rollouts.look().newest == replace(newest, elapsed_s=ANY)
