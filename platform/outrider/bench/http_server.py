"""A server to measure: started as a user starts it, or one that is there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from outrider.config.schema import DraftSettings, EngineSettings, ModelSettings
from outrider.core import Fault, UserError

_READY_S = 300.0  # a first start converts the model
_STOP_S = 60.0
_LOOK_S = 0.25
_OK = 200
_MAX_QUEUE = 1024  # experiments wait in the queue; how it refuses is not what they measure


@dataclass(frozen=True, slots=True)
class Server:
    """Where it answers; `pid` is None where somebody else started it."""

    url: str
    pid: int | None = None


@contextmanager
def started(command: Sequence[str], *, log: Path, tell: Callable[[str], None]) -> Iterator[Server]:
    """Run `command host=.. port=..` until it is ready; stop it with SIGTERM at the end.

    What it prints goes to the file `log`. Fault where it ends or is not ready in time.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "serving.host=127.0.0.1", f"serving.port={port}"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"},
            start_new_session=True,  # Ctrl-C is ours; it gets a SIGTERM from us
        )
    try:
        tell(f"starting the server at {url}, its output is in {log}")
        _wait_ready(process, url, log)
        yield Server(url, process.pid)
    finally:
        _stop(process)


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while not is_ready(url):
        if process.poll() is not None:
            lines = log.read_text(errors="replace").strip().splitlines()
            said = lines[-1] if lines else "it said nothing"
            raise Fault(f"the server ended with status {process.returncode}: {said} ({log})")
        if time.monotonic() > deadline:
            raise Fault(f"the server was not ready within {_READY_S:.0f} s ({log})")
        time.sleep(_LOOK_S)


def is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=5) as response:
            return bool(response.status == _OK)
    except (URLError, OSError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()  # Ray's processes end when their driver does
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Serving:
    """Opens servers, each with exactly these settings; or, given a `url`, the one that is there."""

    script: Path  # jobs/serve.py
    model: ModelSettings  # with the threads of a server that is one replica
    draft: DraftSettings
    engine: EngineSettings
    url: str
    log_dir: Path
    tell: Callable[[str], None]

    @contextmanager
    def __call__(self, num_replicas: int) -> Iterator[Server]:
        if self.url:
            if not is_ready(self.url):
                raise UserError(f"bench.url: no server is ready at {self.url}")
            yield Server(self.url.rstrip("/"))
            return
        log = self.log_dir / "server.log"
        with started(self.command(num_replicas), log=log, tell=self.tell) as server:
            yield server

    def command(self, num_replicas: int) -> list[str]:
        """The replicas share the threads between them, so that all of them fit the machine."""
        num_threads = max(1, self.model.num_threads // num_replicas)
        return [
            sys.executable,
            str(self.script),
            "tracking=off",
            f"draft={self.draft.drafter.value}",  # the group has a draft model where one is needed
            *_words("model", replace(self.model, num_threads=num_threads)),
            *_words("draft", self.draft),
            *_words("engine", self.engine),
            f"serving.num_replicas={num_replicas}",
            f"serving.cpus_per_replica={num_threads}",
            f"serving.max_queue={_MAX_QUEUE}",
            f"serving.log_dir={self.log_dir / 'requests'}",
        ]


def _words(path: str, settings: Any) -> Iterator[str]:
    for field in fields(settings):
        key, value = f"{path}.{field.name}", getattr(settings, field.name)
        if is_dataclass(value):
            yield from _words(key, value)
        elif value is not None:
            yield f"{key}={_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)
