"""`python jobs/rollout.py`: what it can't do is one line, before any service."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

NOBODY = "url=http://127.0.0.1:9"  # the discard port: nothing answers there


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["weights=[0.5,0.25]"], "plan.weights: must grow and stay below 1, got [0.5, 0.25]"),
        (["action=status", NOBODY], "http://127.0.0.1:9 has had no rollout"),
        (["action=pause", NOBODY], "action=pause: http://127.0.0.1:9 has no active rollout"),
        (["release=models:/outrider@nosuch", NOBODY], "models:/outrider@nosuch: no release"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path,
    fresh_store: Path,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    shutil.copy(fresh_store, tmp_path / "runs.db")
    stores = [
        f"database=sqlite:///{tmp_path}/rollouts.db",
        f"tracking.uri=sqlite:///{tmp_path}/runs.db",
    ]
    monkeypatch.chdir(tmp_path)
    assert refused("rollout", *words, *stores).startswith(f"outrider: {said}")
