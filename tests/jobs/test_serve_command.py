"""`python jobs/serve.py` from the outside: it says when it is ready, answers, stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow.parquet as pq
import pytest
from commands import environment, line
from mlflow.tracking import MlflowClient

pytestmark = pytest.mark.ray  # one of its own
LONG = {"stream": True, "max_tokens": 220, "ignore_eos": True, "speculation": {"enabled": False}}


class Shell:
    """The command in a terminal of its own: a Ctrl-C reaches all of its processes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                line("serve", f"port={self.port}", *words),
                cwd=folder,
                env=environment(folder),
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._out.read_text()

    @property
    def noticed(self) -> str:
        return self._err.read_text()

    def wait_until_ready(self) -> None:
        until = time.monotonic() + 200
        while "Ctrl-C" not in self.said:
            assert self.process.poll() is None, self.noticed
            assert time.monotonic() < until, self.noticed
            time.sleep(0.1)

    def wait_until_leaving(self) -> None:
        """Until it says that it is not ready any more."""
        with suppress(HTTPError):
            while urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=60):
                time.sleep(0.05)

    def wait_until_its_run_is_shown(self) -> str:
        """Its id, by the console, which looks every second."""
        until, run_id = time.monotonic() + 60, ""
        while not run_id:
            assert time.monotonic() < until
            with urlopen(f"http://127.0.0.1:{self.port}/console/data", timeout=60) as data:
                run_id = json.load(data)["service"]["run_id"]
            time.sleep(0.05)
        return str(run_id)

    def ask(self, **fields: Any) -> Iterator[bytes]:
        """Lines of the answer, as they come."""
        body = {"messages": [{"role": "user", "content": "Name: Ada"}], **fields}
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        kind = {"content-type": "application/json"}
        with urlopen(Request(url, json.dumps(body).encode(), kind), timeout=100) as answer:
            yield from answer

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def shell(folder: Path, *words: str) -> Iterator[Shell]:
    opened = Shell(folder, *words)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def words(tmp_path: Path, model_folder: Path) -> list[str]:
    return [
        f"model.source=path:{model_folder}",
        *("model.runtime=torch", "model.dtype=float32", "max_tokens=12", "cpus_per_replica=1"),
        "max_rows=1",  # choices of a request are decoded one after the other: it takes seconds
        f"tracking.uri=sqlite:///{tmp_path}/runs.db",
        *("tracking.window_s=0.5", "log_dir=requests"),
    ]


def recorded(folder: Path) -> Any:
    """The one run that there is."""
    client = MlflowClient(f"sqlite:///{folder}/runs.db")
    experiment = client.get_experiment_by_name("outrider")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    return run


def test_it_serves_until_ctrl_c_and_ends_what_is_in_flight(
    tmp_path: Path, words: list[str]
) -> None:
    with shell(tmp_path, *words) as server:
        server.wait_until_ready()
        pasted = subprocess.run(
            ["bash", "-c", next(each for each in server.said.splitlines() if "curl" in each)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert pasted.stdout.strip().endswith("data: [DONE]")
        run_id = server.wait_until_its_run_is_shown()
        assert f"recorded as MLflow run {run_id}: " in server.said

        stream = server.ask(**LONG, n=8)
        first = next(stream)
        server.interrupt()
        server.wait_until_leaving()
        with pytest.raises(HTTPError, match="503"):  # while the other goes on
            list(server.ask())
        rest = list(stream)
        assert b'"content"' in first
        assert rest[-2].strip() == b"data: [DONE]"
        assert b'"finish_reason":"length"' in rest[-4]

        assert server.process.wait(60) == 0
        assert "Traceback" not in server.noticed
        assert len(server.noticed.splitlines()) < 8, server.noticed
        shown = re.search(r"fingerprint ([0-9a-f]{12})", server.said)
        assert shown is not None
    run = recorded(tmp_path)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["num_emitted_tokens"] == 12 + 8 * 220
    assert run.data.metrics["window.tokens_per_s"] > 0
    assert run.data.params["fingerprint"].startswith(shown[1])
    rows = pq.read_table(tmp_path / "requests").to_pylist()
    assert sorted(row["status"] for row in rows) == [200, 200, 503]


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, words: list[str], fresh_store: Path) -> None:
    with shell(tmp_path, *words) as server:
        server.wait_until_ready()
        slow = server.ask(**LONG, n=16)
        next(slow)
        server.interrupt()
        while "stopping" not in server.noticed:
            time.sleep(0.01)
        server.interrupt()
        with suppress(OSError):
            list(slow)
        assert server.process.wait(60) == 128 + signal.SIGINT
        assert server.noticed.splitlines()[-1] == "outrider: interrupted"
        assert "Traceback" not in server.noticed
    assert recorded(tmp_path).info.status == "KILLED"


def test_a_taken_port_is_one_line(
    tmp_path: Path, words: list[str], refused: Callable[..., str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("serve", *words, f"port={port}")
    assert said.startswith(f"outrider: serving.port: {port} on 127.0.0.1 is taken")
    assert not (tmp_path / "runs.db").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("host=0.0.0.0", "outrider: serving.host: 0.0.0.0 can be reached from outside"),
        ("host=192.0.2.1 keys_file=k admin_keys_file=k", "outrider: serving.host: can't listen"),
        ("cpus_per_replica=9999", "outrider: serving.cpus_per_replica is 9999"),
        ("keys_file=missing", "outrider: serving.keys_file: can't read"),
        ("model.source=path:nowhere", "outrider: model.source"),
        ("trace=true", "outrider: engine.trace: "),
    ],
)
def test_what_cannot_be_served_is_one_line(
    tmp_path: Path,
    words: list[str],
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k").write_text("secret\n")
    assert refused("serve", *words, *changed.split()).startswith(said)
