"""The README's commands exist and mean something."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```[a-z]*\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]
JOBS = [line for line in COMMANDS if line.startswith("python jobs/")]


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) < 200


def test_every_make_target_it_names_is_there() -> None:
    targets = set(re.findall(r"`make ([a-z-]+)`", README))
    rules = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "check", "figures"} <= targets <= rules


def test_every_file_it_names_is_there() -> None:
    for path in re.findall(r"`((?:conf|jobs|platform|tests)/[\w./]+)`", README):
        assert (REPOSITORY / path).exists(), path


@pytest.mark.parametrize("line", JOBS)
def test_every_job_command_is_understood(line: str) -> None:
    """Shown as its resolved configuration: composed and validated, not run."""
    words = shlex.split(line)[1:]
    done = subprocess.run(
        [sys.executable, *words, *([] if "--help" in words else ["--cfg"])],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tracking" in done.stdout


def test_there_are_commands_to_try() -> None:
    assert len(JOBS) > 5
