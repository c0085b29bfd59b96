"""Sides in processes of their own, on a real Ray."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trial_toys import Dying, World, contender

from outrider.core import SystemClock, UserError
from outrider.testing import AlphabetEngine
from outrider.trial.arena import ActorSide
from outrider.trial.judgement import Decision
from outrider.trial.tables import read_observations, read_turns


@pytest.mark.usefixtures("joined")
def test_a_process_that_dies_costs_its_batch_and_comes_back(tmp_path: Path) -> None:
    world, mark = World(tmp_path), tmp_path / "mark"
    mark.write_text("once\n")
    trial = world.trial(
        contender("plain", AlphabetEngine(delay_s=0.001), baseline=""),
        contender("dies", Dying(mark)),
        open_side=lambda one: ActorSide(one, 60.0),
        in_flight=(2,),
    )
    record = replace(trial, clock=SystemClock(), warmup=()).run()
    seen = [
        one
        for one in read_observations(tmp_path / "trial/observations.parquet")
        if one.contender == "dies"
    ]
    lost = [one for one in seen if one.error]
    assert {(one.error, one.batch) for one in lost} == {("lost", 0)}
    assert len(lost) == 4
    assert len(seen) == 32
    assert {one.parity for one in seen if not one.error} == {"equal"}
    judged = next(one for one in record.entrants if one.name == "dies").judgement
    assert judged is not None
    assert judged.decision is Decision.REJECT

    turns = read_turns(tmp_path / "trial/turns.parquet")
    alive = [turn for turn in turns if not turn.num_failed]
    assert all(turn.peak_memory_bytes > 10 * 2**20 for turn in alive), "of its own process"
    assert all(turn.cpu_s >= 0 for turn in alive)


def refused() -> tuple[object, object]:
    raise UserError("draft.model.source: no such folder")


@pytest.mark.usefixtures("joined")
def test_an_engine_that_can_not_be_opened_is_one_line_with_its_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    trial = world.trial(
        contender("plain", AlphabetEngine(), baseline=""),
        contender("x", refused),  # type: ignore[arg-type]
        open_side=lambda one: ActorSide(one, 60.0),
    )
    with pytest.raises(UserError, match=r"^x: draft\.model\.source: no such folder$"):
        trial.run()
