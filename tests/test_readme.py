"""The README's commands exist and mean something."""

from __future__ import annotations

import re
import runpy
import shlex
import signal
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
def test_every_job_command_is_understood(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shown as its resolved configuration: composed and validated, not run. In this process."""
    words = shlex.split(line)[1:]
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("sys.argv", [*words, *([] if "--help" in words else ["--cfg"])])
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(words[0], run_name="__main__")
    finally:
        signal.signal(signal.SIGTERM, handler)
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    assert "tracking" in said.out


def test_there_are_commands_to_try() -> None:
    assert len(JOBS) > 5
