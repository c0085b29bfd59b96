"""Ray started for one command, or joined where it runs."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outrider.cluster.cores import is_given, num_cores
from outrider.cluster.environment import prepare_environment, stderr_into
from outrider.core import Fault, UserError

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402

KNOCK_S = 10.0
OBJECT_STORE_BYTES = 128 * 2**20  # what is sent are a few hundred bytes each


@contextmanager
def ray_session(log: Path, *, num_cpus: int) -> Iterator[None]:
    """A private Ray on loopback, or the cluster that RAY_ADDRESS names; left at the end.

    A private one has at least `num_cpus`. What Ray writes to the terminal while it starts goes
    into `log`.
    """
    if ray.is_initialized():  # the caller's own
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if not is_given():
        options |= {
            "address": "local",  # not one that somebody else has started on this machine
            "num_cpus": max(num_cores(), num_cpus),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
        }
    else:
        check_address(os.environ["RAY_ADDRESS"])
    log.parent.mkdir(parents=True, exist_ok=True)
    with _signals_kept(), stderr_into(log):
        try:
            ray.init(**options)
        except Exception as error:  # Ray raises a bare one where its processes are slow to come
            raise Fault(f"Ray does not start: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Raise UserError where nobody listens: Ray would try for minutes, and say so to its log.

    Words such as `auto`, and a bare host, are left to Ray.
    """
    found = _HOST_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"RAY_ADDRESS: no cluster answers at {address} ({error});"
            " leave it out for a Ray of this command's own"
        ) from error


_HOST_PORT = re.compile(r"(?:ray://)?\[?(?P<host>[^\[\]/]+?)\]?:(?P<port>\d{1,5})")


@contextmanager
def _signals_kept() -> Iterator[None]:
    """`ray.init` puts a SIGTERM handler of its own; ours comes back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
