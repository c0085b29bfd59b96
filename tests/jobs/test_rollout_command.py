"""`python jobs/rollout.py` from the outside: what it can't do is one line, before any service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = "url=http://127.0.0.1:9"  # the discard port: nothing answers there


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["weights=[0.5,0.25]"], 2, "plan.weights: must grow and stay below 1, got [0.5, 0.25]"),
        (["action=status", NOBODY], 2, "http://127.0.0.1:9 has had no rollout"),
        (["action=pause", NOBODY], 2, "action=pause: http://127.0.0.1:9 has no active rollout"),
        (["release=models:/outrider@nosuch", NOBODY], 2, "models:/outrider@nosuch: no release"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, str(REPOSITORY / "jobs" / "rollout.py"), *words),
            f"database=sqlite:///{tmp_path}/rollouts.db",
            f"tracking.uri=sqlite:///{tmp_path}/runs.db",
        ],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.startswith(f"outrider: {said}")
    assert ended.stderr.count("\n") == 1
