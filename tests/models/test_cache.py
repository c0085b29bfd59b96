"""A cache entry appears whole or not at all, and is made once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from outrider.core import Fault, UserError
from outrider.models.cache import default_cache_dir, entry_name, make_once

KILLED_WHILE_MAKING = """
import os, signal, sys
from pathlib import Path
from outrider.models.cache import make_once

def make(folder):
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

make_once(Path(sys.argv[1]), make, print)
"""


def test_a_second_call_makes_nothing(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "weights").write_text("w")

    first = make_once(tmp_path / "cache" / "entry", make, print)
    second = make_once(tmp_path / "cache" / "entry", make, print)
    assert first == second
    assert (second / "weights").read_text() == "w"
    assert len(made) == 1


def test_a_failure_leaves_nothing_and_the_next_try_succeeds(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        make_once(tmp_path / "entry", fail, print)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    make_once(tmp_path / "entry", lambda folder: (folder / "a").touch(), print)
    assert [path.name for path in (tmp_path / "entry").iterdir()] == ["a"]


def test_a_killed_process_leaves_no_half_entry_and_no_lock(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_MAKING, str(entry)], check=False, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert not entry.exists()
    assert len(list(tmp_path.glob("entry.*.tmp"))) == 1  # the half, never looked at
    make_once(entry, lambda folder: (folder / "whole").touch(), print)
    assert [path.name for path in entry.iterdir()] == ["whole"]
    assert list(tmp_path.glob("entry.*.tmp")) == []


def test_a_second_maker_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    started, waiting = threading.Event(), threading.Event()
    made: list[str] = []

    def slow(folder: Path) -> None:
        started.set()
        assert waiting.wait(60)
        made.append("first")

    def hear(line: str) -> None:
        assert "waiting" in line
        waiting.set()

    first = threading.Thread(target=make_once, args=(tmp_path / "entry", slow, print))
    first.start()
    assert started.wait(60)
    make_once(tmp_path / "entry", lambda folder: made.append("second"), hear)
    first.join()
    assert made == ["first"]


def test_a_disk_that_refuses_is_one_line_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Fault, match="OUTRIDER_CACHE"):
        make_once(tmp_path / "file" / "entry", lambda folder: None, print)


def test_the_cache_folder_comes_from_the_environment_or_home(tmp_path: Path) -> None:
    assert default_cache_dir({"OUTRIDER_CACHE": str(tmp_path)}) == tmp_path
    assert default_cache_dir({}) == Path.home() / ".cache" / "outrider"


def test_entry_names_are_readable_safe_and_unique() -> None:
    one, other = entry_name("org/My Model", "a", "b"), entry_name("org/My Model", "ab", "")
    assert one.startswith("org-My-Model-")
    assert one != other
    assert os.sep not in one
    assert len(entry_name("x" * 500, "a")) < 100
