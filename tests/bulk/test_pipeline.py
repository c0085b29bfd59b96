"""The whole job on a real Ray: killed, stopped, resumed.

What is to be killed or stopped is a process of its own; else the driver is this process, which has
joined the Ray that is there, so that neither has to start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from drive import main
from workshop import Workshop, read_lines, request, write_input

from outrider.bulk.glance import JobGlance, JobState, all_jobs
from outrider.telemetry.meters import meter_of

DRIVE = Path(__file__).with_name("drive.py")
ROWS = [request(f"r{n}", temperature=n % 2) for n in range(16)]  # four shards
PATIENCE_S = 120.0


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, f"ended before: {process.communicate()[0]}"
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


@dataclass
class Bench:
    """A job's files, and its driver as a process."""

    root: Path
    rows: Sequence[object]
    screen: pytest.CaptureFixture[str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    address: str = ""  # of a Ray that a process joins; empty: it starts its own

    def start(self, **changes: Any) -> subprocess.Popen[str]:
        path = self.root / "spec.json"
        path.write_text(json.dumps(self._spec(changes)))
        process = subprocess.Popen(
            [sys.executable, str(DRIVE), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment(),
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def _spec(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        source = write_input(self.root / "in.jsonl", self.rows)
        base = {"input": str(source), "job_dir": str(self.job)}
        places = {"track": str(self.root / "track.jsonl"), "beacons": str(self.root / "beacons")}
        spec = {**places, **changes}
        spec["bulk"] = {**base, **spec.get("bulk", {})}
        spec["engine"] = {"pids": str(self.root / "pids"), **spec.get("engine", {})}
        return spec

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        joined = {"RAY_ADDRESS": self.address} if self.address else {}
        return {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "80", **joined}

    def run(self, **changes: Any) -> tuple[int, str]:
        """In this process: the status that it would end with, and what it said."""
        self.screen.readouterr()
        status = main(self._spec(changes))
        return status, "".join(self.screen.readouterr())

    @property
    def job(self) -> Path:
        return self.root / "job"

    def seen(self) -> JobGlance:
        """As others see it by its beacon."""
        (job,) = all_jobs(self.root / "beacons")
        return job

    def parts(self) -> list[Path]:
        return sorted((self.job / "parts").glob("*.jsonl")) if self.job.exists() else []

    def workers(self) -> list[int]:
        folder = self.root / "pids"
        return [int(path.name) for path in folder.iterdir()] if folder.exists() else []

    def output(self) -> bytes:
        return (self.job / "output.jsonl").read_bytes()

    def closed(self) -> list[str]:
        return [
            line["closed"] for line in read_lines(self.root / "track.jsonl") if "closed" in line
        ]


@pytest.fixture
def bench(tmp_path: Path, joined: None, capfd: pytest.CaptureFixture[str]) -> Iterator[Bench]:
    made = Bench(tmp_path, ROWS, capfd)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def guest(bench: Bench, cluster: Any) -> Bench:
    """Its process joins a Ray that is there, which the driver's death leaves running."""
    bench.address = cluster.address
    return bench


@pytest.fixture
def undisturbed(tmp_path: Path) -> bytes:
    root = tmp_path / "undisturbed"
    root.mkdir()
    shop = Workshop(root, ROWS)
    shop.run()
    return shop.output()


def test_a_job_runs_to_its_report_and_a_second_run_has_nothing_to_do(bench: Bench) -> None:
    """P01 end to end, with the baseline, two workers, windows and the closing screen."""
    bench.rows = [
        *ROWS,
        request("long", "x" * 5000),
        {**request("url"), "url": "/v1/edits"},
        "not JSON",
        request("stream", stream=True),
    ]
    bulk = {"baseline": "all", "num_workers": 2}
    status, said = bench.run(bulk=bulk, engine={"delay_s": 0.2})
    assert status == 0, said
    assert "16 rows done, 4 failed" in said
    assert "Traceback" not in said
    errors = read_lines(bench.job / "errors.jsonl")
    assert [e["code"] for e in errors] == ["refused", "unknown_url", "invalid_json", "unsupported"]
    assert pq.read_table(bench.job / "output.parquet")["custom_id"].to_pylist() == [
        f"r{n}" for n in range(16)
    ]
    report = json.loads((bench.job / "report.json").read_text())
    assert report["num_rows_done"] + report["num_rows_failed"] == report["num_rows"] == 20
    assert report["total"]["speedup_ratio"] == pytest.approx(2.0)
    assert report["parity"]["num_compared"] == 16
    assert report["run_id"] == "run-1"
    tracked = read_lines(bench.root / "track.jsonl")
    windows = [line["window"] for line in tracked if "window" in line]
    assert all(name.startswith("window.") for window in windows for name in window)
    [final] = [line["final"] for line in tracked if "final" in line]
    assert all(meter_of(name) for figures in (*windows, final) for name in figures)
    assert final["speedup_ratio"] == pytest.approx(2.0)
    assert windows
    assert bench.closed() == ["FINISHED"]
    seen = bench.seen()
    assert (seen.state, seen.name, seen.run_id) == (JobState.FINISHED, "job", "run-1")
    assert (seen.num_rows, seen.num_rows_done, seen.num_rows_failed) == (20, 16, 4)
    assert seen.num_emitted_tokens > 0
    assert 2 * seen.num_accepted_tokens == seen.num_evaluated_tokens > 0
    (beacon,) = (bench.root / "beacons").iterdir()
    assert "prompt" not in beacon.read_text()

    before = bench.output()
    status, said = bench.run(bulk=bulk)
    assert (status, bench.output()) == (0, before)
    assert "16 rows done, 4 failed" in said
    assert bench.closed() == ["FINISHED"]  # nothing was done, so no run was begun

    status, said = bench.run(bulk=bulk, sampling={"temperature": 0.3}, fingerprint="f2")
    assert status == 2
    assert "sampling.temperature: unset -> 0.3" in said  # P06
    assert len(said.splitlines()) == 1


def test_a_killed_worker_is_replaced_and_its_rows_redone(guest: Bench, undisturbed: bytes) -> None:
    """P02."""
    process = guest.start(engine={"delay_s": 1.0})
    wait_for(guest.parts, process)
    os.kill(guest.workers()[0], signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert len(guest.workers()) == 2
    assert guest.output() == undisturbed
    assert "Traceback" not in said


def test_a_killed_driver_resumes_and_keeps_what_was_done(guest: Bench, undisturbed: bytes) -> None:
    """P03, P04: SIGKILL of the driver, and of the worker with it."""
    process = guest.start(engine={"delay_s": 1.5})
    wait_for(guest.parts, process)
    running = guest.seen()
    assert (running.state, running.num_rows) == (JobState.RUNNING, 16)
    os.kill(process.pid, signal.SIGKILL)
    for pid in guest.workers():
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert guest.seen().state is JobState.STOPPED
    kept = {path.name: path.read_bytes() for path in guest.parts()}
    assert 0 < len(kept) < 4

    status, said = guest.run()
    assert status == 0, said
    assert guest.output() == undisturbed
    for name, content in kept.items():
        assert (guest.job / "parts" / name).read_bytes() == content


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_a_stopped_job_closes_its_run_and_can_go_on(
    bench: Bench, undisturbed: bytes, cluster: Any, sent: signal.Signals, status: int
) -> None:
    """P14."""
    is_typed = sent is signal.SIGINT  # a terminal sends it to every process of the job, Ray's too
    bench.address = "" if is_typed else cluster.address
    process = bench.start(engine={"delay_s": 2.0})
    wait_for(bench.parts, process)
    if is_typed:
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, said
    assert "Traceback" not in said
    assert bench.closed() == ["KILLED"]
    manifest = json.loads((bench.job / "manifest.json").read_text())
    assert manifest["sessions"][0]["status"] == "KILLED"
    assert len(manifest["shards"]) < 4

    status, said = bench.run()  # it may go on elsewhere
    assert status == 0, said
    assert bench.output() == undisturbed


def test_a_deadly_row_stops_the_job_by_its_lines(bench: Bench) -> None:
    bench.rows = [request("a"), request("b", "deadly")]
    status, said = bench.run()
    assert status == 1
    assert "lines 1 to 2 ended their worker 3 times" in said
    assert bench.closed() == ["FAILED"]
    assert bench.seen().state is JobState.FAILED


def test_a_model_that_does_not_load_is_one_line(bench: Bench) -> None:
    status, said = bench.run(engine={"refusal": "model.source: no such folder"})
    assert status == 2
    assert said.splitlines()[-1] == "model.source: no such folder"
    assert "Traceback" not in said
    assert bench.closed() == ["FAILED"]


def test_bad_input_is_refused_before_ray_starts(bench: Bench) -> None:
    """P05, P19."""
    bench.rows = [request("a"), request("a")]
    status, said = bench.run()
    assert status == 2
    assert "lines 1 and 2 have the same custom_id 'a'" in said
    assert not bench.workers()
    assert not (bench.root / "track.jsonl").exists()
    status, said = bench.run(bulk={"shard_rows": 0})
    assert (status, said.strip()) == (2, "bulk.shard_rows must be at least 1, got 0")
