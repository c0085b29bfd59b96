"""The console's maker crosses processes, and needs nothing of the machine that made it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from outrider import entry
from outrider.config.load import load
from outrider.config.schema import ConsoleSettings, ServeJob, ServingSettings
from outrider.console.recipe import ConsoleRecipe
from outrider.core import UserError
from outrider.wiring.server import placed, placed_console
from outrider.wiring.stores import RUNS


def test_what_is_left_open_is_said_before_it_leaves_this_machine() -> None:
    job = placed(load(ServeJob, "serve", ["serving.port=8123"]))
    assert job.console.url == "http://127.0.0.1:8123"
    assert job.console.database == f"sqlite:///{RUNS / 'rollouts.db'}"
    assert Path(job.console.beacons_dir) == RUNS / "jobs"
    assert job.tracking.uri.endswith("runs/outrider.db")


def test_what_is_said_stays() -> None:
    said = ConsoleSettings(database="postgresql://d/r", url="http://lm.example", beacons_dir="/b")
    assert placed_console(said, ServingSettings()) == said


@pytest.mark.parametrize("database", ["sqlite:///here.db", "postgres//db", "sqlite:////"])
def test_a_database_that_can_be_none_is_refused_by_its_key(database: str) -> None:
    with pytest.raises(UserError, match=r"console\.database"):
        placed(load(ServeJob, "serve", [f"console.database={database}"]))


def test_on_a_machine_without_any_of_it_there_is_nothing_to_show(tmp_path: Path) -> None:
    chosen = ConsoleSettings(
        database=f"sqlite:///{tmp_path / 'away' / 'rollouts.db'}",
        url="http://127.0.0.1:8000",
        beacons_dir=str(tmp_path / "gone"),
    )
    recipe = pickle.loads(pickle.dumps(ConsoleRecipe(settings=chosen, store="http://u:p@lm:5000")))
    beside = recipe.beside
    assert beside.rollouts.look().newest is None
    assert beside.jobs.look() == ()
    assert beside.runs.view.url == "http://lm:5000"
    assert list(tmp_path.iterdir()) == []


def test_a_console_that_is_off_is_not_there() -> None:
    job = placed(load(ServeJob, "serve", ["console.enabled=false"]))
    assert entry.additions(job) == ()
    on = replace(job, console=replace(job.console, enabled=True))
    (recipe,) = entry.additions(on)
    assert isinstance(recipe, ConsoleRecipe)
    assert recipe.store == job.tracking.uri
    off = replace(on, tracking=replace(on.tracking, enabled=False))
    assert entry.additions(off) == (replace(recipe, store=""),)
