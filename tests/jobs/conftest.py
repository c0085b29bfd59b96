"""A command in this process, for what it refuses: to start one costs seconds.

Makes `commands` importable.
"""

from __future__ import annotations

import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

JOBS = Path(__file__).resolve().parents[2] / "jobs"


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., str]]:
    """`refused("bulk", *words)`: the one line that `python jobs/bulk.py ...` ends with."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    handler = signal.getsignal(signal.SIGTERM)

    def refused(name: str, *words: str) -> str:
        path = str(JOBS / f"{name}.py")
        monkeypatch.setattr("sys.argv", [path, *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(path, run_name="__main__")
        said = capsys.readouterr()
        assert (ended.value.code, said.out) == (2, "")
        assert said.err.count("\n") == 1, said.err
        return said.err

    yield refused
    signal.signal(signal.SIGTERM, handler)
