"""The closing screen at its width."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from trial_toys import World, at_pace, contender, plain

from outrider.trial.screen import Screen


def shown(world: World) -> str:
    record = world.trial(
        plain(world.clock),
        contender("draft=fixed length.max=4 engine.rule=coupled", at_pace(world.clock, length=4)),
        contender("slower", at_pace(world.clock, round_s=0.013)),
        price_per_hour=0.2,
    ).run()
    screen = io.StringIO()
    Screen(record, "EUR", 2).show(Console(file=screen, width=100))
    return screen.getvalue()


def test_every_contender_has_its_figures_its_decision_and_why(tmp_path: Path) -> None:
    text = shown(World(tmp_path))
    assert "1 in flight" in text
    assert "slower (version 2): reject: speed-up 0.77 (" in text
    assert "adopt: every criterion is met" in text
    assert "EUR/million" in text
    assert "language" not in text, "nobody said one"
    assert "not judged, too few pairs: 1 in flight, temperature:0.5" in text
    assert "12 tuning prompts of toys.jsonl" in text


def test_no_table_is_wider_than_the_screen(tmp_path: Path) -> None:
    lines = shown(World(tmp_path)).splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines), "nothing is cut"
