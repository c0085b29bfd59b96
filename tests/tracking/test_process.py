"""A process that is surely gone is told from one that may live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from outrider.tracking.process import Process

SAY_WHO = (
    "from outrider.tracking.process import Process; import json, sys;"
    "print(json.dumps(Process.current().to_tags()), flush=True); sys.stdin.read()"
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A living process that told who it is."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_WHO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def who(child: subprocess.Popen[str]) -> Process:
    assert child.stdout is not None
    found = Process.from_tags(json.loads(child.stdout.readline()))
    assert found is not None
    return found


def test_tags_give_the_process_back() -> None:
    here = Process.current()
    assert Process.from_tags(here.to_tags()) == here
    assert Process.from_tags({}) is None
    assert not here.is_gone(here)


def test_a_killed_process_is_gone_before_its_parent_has_looked(
    child: subprocess.Popen[str],
) -> None:
    owner, here = who(child), Process.current()
    assert not owner.is_gone(here)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not reaped: a zombie
    assert owner.is_gone(here)
    child.wait()
    assert owner.is_gone(here)


def test_a_later_process_with_the_same_number_is_another() -> None:
    here = Process.current()
    assert replace(here, started=str(int(here.started) - 1)).is_gone(here)


def test_a_boot_ends_every_process() -> None:
    here = Process.current()
    assert replace(here, boot="before").is_gone(here)


@pytest.mark.parametrize("elsewhere", [{"host": "other"}, {"namespace": "pid:[1]"}])
def test_nothing_is_sure_about_another_host_or_container(elsewhere: dict[str, str]) -> None:
    here = Process.current()
    assert not replace(here, started="0", **elsewhere).is_gone(here)
