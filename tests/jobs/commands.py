"""`python jobs/NAME.py WORDS` in a folder of its own: as a process, or on the Ray that is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outrider import wiring
from outrider.config.load import load
from outrider.config.schema import BulkJob

REPOSITORY = Path(__file__).resolve().parents[2]


def line(name: str, *words: str) -> list[str]:
    return [sys.executable, str(REPOSITORY / "jobs" / f"{name}.py"), *words]


def environment(place: Path, address: str = "") -> dict[str, str]:
    """`address`: of a Ray that is there; empty: the command starts its own."""
    kept = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    joined = {"RAY_ADDRESS": address} if address else {}
    return kept | {"HOME": str(place), "OUTRIDER_CACHE": str(place / "cache")} | joined


@contextmanager
def running(
    name: str, place: Path, *words: str, address: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """Leads a process group: a signal to that reaches all that it starts. At the end it is shot."""
    with subprocess.Popen(
        line(name, *words),
        cwd=place,
        env=environment(place, address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                shoot(process)


def shoot(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finished(name: str, place: Path, *words: str, address: str = "") -> tuple[str, str]:
    """What it said, once it has ended well: its answer and its notices."""
    with running(name, place, *words, address=address) as process:
        said, noticed = process.communicate(timeout=240)
    assert process.returncode == 0, noticed
    assert "Traceback" not in noticed
    return said, noticed


def bulk(place: Path, *words: str) -> None:
    """The job in this process, which has joined a Ray: without a start of either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("OUTRIDER_CACHE", str(place / "cache"))
        assert wiring.bulk(load(BulkJob, "bulk", words), words) == 0
