"""What Ray reads from the environment, and how its start is kept off the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a FutureWarning
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # else C++ lines about restartable actors on the terminal
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # else a finaliser that is late starts a Ray that nobody ends
}
# Ray's own switch for one-machine use: every port listens on 127.0.0.1. The name is historical;
# `_node_ip_address="127.0.0.1"` would be turned into the outer address again.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def prepare_environment() -> None:
    """Call before Ray is imported: it reads these names then. What the user set stays."""
    wanted = QUIET if "RAY_ADDRESS" in os.environ else QUIET | LOOPBACK
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


@contextmanager
def stderr_into(path: Path) -> Iterator[None]:
    """Send what is written to file descriptor 2 into a file: Ray's C++ greets before it listens
    to its log level. Python's own `sys.stderr` keeps its place.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    python = os.fdopen(os.dup(terminal), "w", buffering=1, errors="backslashreplace")
    before, sys.stderr = sys.stderr, python
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr = before
        os.dup2(terminal, 2)
        os.close(terminal)
        python.close()
