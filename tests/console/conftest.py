"""Makes what these tests share importable, and opens a browser where one is asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chromium import Chromium
    from play import Play

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "serving"), str(HERE.parent / "rollout")]


@pytest.fixture
def play() -> Play:
    from play import Play
    from scene import scene

    return Play(scene(time.time()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """Of one module: no test may run a loop of its own in this thread meanwhile."""
    from chromium import opened

    with opened() as one:
        yield one
