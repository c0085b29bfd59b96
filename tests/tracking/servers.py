"""Real servers that a test starts, shoots and starts again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

START_S = 120.0
USER = "outrider"
SERVER_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # half a dozen more processes, for nothing here
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(is_there: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            is_there()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


class Postgres:
    """A server in a folder of its own, run by a user that is not root, which it refuses."""

    def __init__(self) -> None:
        programs = self.programs()
        assert programs is not None
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="outrider-postgres-"))  # pytest's are root's
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._port = free_port()
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._call("initdb", "-D", "data", "-U", USER, "-A", "trust", "-N", "--locale=C", "-EUTF8")

    @staticmethod
    def programs() -> Path | None:
        """The folder of its programs; None where it is not installed."""
        found = shutil.which("postgres")
        if found:
            return Path(found).resolve().parent
        newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        return newest[-1].parent if newest else None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", "data", "-F", "-h", "127.0.0.1", "-p", str(self._port)),
                    *("-k", str(self._folder)),
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                **self._as,
            )
        wait_until(lambda: self.query("SELECT 1"), self._process, self._log)

    def kill(self) -> None:
        """As a crash: nobody is waited for, and the next start has to recover."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def remove(self) -> None:
        if self.is_running:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def uri(self, name: str) -> str:
        """The address of the database `name`, which is made where there is none."""
        if not self.query(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.query(f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@127.0.0.1:{self._port}/{name}"

    def query(self, text: str) -> Sequence[Any]:
        address = f"host=127.0.0.1 port={self._port} user={USER} dbname=postgres"
        try:
            with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
                cursor = connection.execute(text)
                return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError as error:  # not there, or not yet
            raise ConnectionError(str(error)) from error

    def _call(self, program: str, *words: str) -> None:
        with self._log.open("ab") as log:
            subprocess.run(
                [str(self._programs / program), *words],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                check=True,
                **self._as,
            )


class MlflowServer:
    """`mlflow server` on loopback, in a process group of its own."""

    def __init__(self, folder: Path, backend_uri: str) -> None:
        self._folder = folder
        self._backend_uri = backend_uri
        self._port = free_port()
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
                    *("--host", "127.0.0.1", "--port", str(self._port)),
                    *("--backend-store-uri", self._backend_uri),
                    *("--artifacts-destination", str(self._folder / "served")),
                ],
                cwd=self._folder,
                env=os.environ | SERVER_ENVIRONMENT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(
            lambda: urllib.request.urlopen(f"{self.uri}/health", timeout=5).read(),
            self._process,
            self._log,
        )

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
