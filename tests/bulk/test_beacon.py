"""A job's beacon, and who sees by it how far the job is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from outrider.bulk.beacon import Beacon
from outrider.bulk.glance import JobGlance, JobState, all_jobs
from outrider.bulk.live import Tally
from outrider.bulk.progress import Pace
from outrider.config.interruption import Terminated
from outrider.core import Fault
from outrider.testing import ManualClock
from outrider.tracking.process import PREFIX, Process


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def beacons(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "jobs"


def job_in(folder: Path, began_s: float = 1000.0) -> JobGlance:
    folder.mkdir(parents=True, exist_ok=True)
    return JobGlance(
        name=folder.name,
        job_dir=str(folder),
        state=JobState.RUNNING,
        num_rows=100,
        num_rows_done=10,
        num_rows_failed=1,
        began_s=began_s,
        at_s=began_s,
        fingerprint="f1",
        run_id="run-1",
    )


def only(beacons: Path, here: Process | None = None) -> JobGlance:
    (job,) = all_jobs(beacons, here=here)
    return job


def test_a_job_that_runs_tells_its_progress_about_once_a_second(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    job = job_in(tmp_path / "job")
    pace = Pace(num_total=100, num_before=11, now=clock.monotonic())
    pace.glance(Tally(), 11, clock.monotonic())
    with Beacon(beacons, job, clock) as beacon:
        assert only(beacons) == job
        shown = []
        for half in range(1, 7):
            clock.advance(0.5)
            tally = Tally(num_rows=3 * half, emitted=100 * half, evaluated=40, accepted=30)
            beacon.progress(pace.glance(tally, 11, clock.monotonic()), tally, num_failed=2)
            shown.append(only(beacons).at_s)
        assert shown == [1000.0, 1001.0, 1001.0, 1002.0, 1002.0, 1003.0]
        seen = only(beacons)
    assert (seen.num_rows_done, seen.num_rows_failed) == (11 + 18 - 2, 2)
    assert (seen.num_emitted_tokens, seen.tokens_per_s) == (600, 200.0)
    assert (seen.num_evaluated_tokens, seen.num_accepted_tokens) == (40, 30)
    assert seen.eta_s is not None
    assert (seen.name, seen.fingerprint, seen.run_id) == ("job", "f1", "run-1")


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (None, JobState.FINISHED),
        (Fault("the model broke"), JobState.FAILED),
        (KeyboardInterrupt(), JobState.STOPPED),
        (Terminated(), JobState.STOPPED),
    ],
)
def test_how_it_ended_stays_to_be_seen(
    tmp_path: Path,
    beacons: Path,
    clock: ManualClock,
    error: BaseException | None,
    state: JobState,
) -> None:
    def run() -> None:
        with Beacon(beacons, job_in(tmp_path / "job"), clock) as beacon:
            tally = Tally(num_rows=9, emitted=90)
            pace = Pace(100, 11, clock.monotonic())
            clock.advance(0.1)
            beacon.progress(pace.glance(tally, 11, clock.monotonic()), tally, num_failed=1)
            beacon.count(num_done=98, num_failed=2)
            if error is not None:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(type(error)):
            run()
    seen = only(beacons)
    assert seen.state is state
    assert (seen.num_rows_done, seen.num_rows_failed) == (98, 2)
    assert (seen.tokens_per_s, seen.eta_s) == (0.0, None)
    assert (seen.num_emitted_tokens, seen.at_s) == (90, 1000.1)


def test_a_job_whose_process_is_gone_has_stopped(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    with Beacon(beacons, replace(job_in(tmp_path / "job"), tokens_per_s=9.0), clock):
        here = Process.current()
        assert only(beacons, here).state is JobState.RUNNING
        after_a_boot = replace(here, boot="another boot")  # no process of ours outlives one
        seen = only(beacons, after_a_boot)
        assert (seen.state, seen.tokens_per_s) == (JobState.STOPPED, 0.0)
        elsewhere = replace(here, host="another-machine")
        assert only(beacons, elsewhere).state is JobState.RUNNING  # nobody knows from there


def test_the_next_run_in_a_folder_takes_the_place_of_the_last_one(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    for began_s in (1000.0, 2000.0):
        with Beacon(beacons, job_in(tmp_path / "job", began_s), clock):
            assert only(beacons).began_s == began_s
    assert len(list(beacons.iterdir())) == 1


def test_a_folder_that_is_gone_is_no_job(tmp_path: Path, beacons: Path, clock: ManualClock) -> None:
    folder = tmp_path / "job"
    with Beacon(beacons, job_in(folder), clock):
        pass
    folder.rmdir()
    assert all_jobs(beacons) == ()
    (beacons / "foreign.json").write_text("[]")
    with Beacon(beacons, job_in(tmp_path / "another"), clock):
        assert only(beacons).name == "another"
    left = {path.name for path in beacons.iterdir()}
    assert len(left) == 2  # the other job's, and what is none of ours
    assert "foreign.json" in left


def test_the_newest_come_first_and_one_that_runs_is_not_left_out(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    with Beacon(beacons, job_in(tmp_path / "long", 1.0), clock):
        for number in range(2, 6):
            with Beacon(beacons, job_in(tmp_path / f"job-{number}", float(number)), clock):
                pass
        names = [job.name for job in all_jobs(beacons, most=3)]
    assert names == ["job-5", "job-4", "long"]


def test_what_cannot_be_read_is_passed_over(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    assert all_jobs(beacons) == ()
    with Beacon(beacons, job_in(tmp_path / "job"), clock):
        (lit,) = beacons.iterdir()
        told = json.loads(lit.read_text())
        (beacons / "empty.json").touch()
        (beacons / "list.json").write_text("[]")
        (beacons / "version.json").write_text(json.dumps({**told, "version": 2}))
        (beacons / "state.json").write_text(
            json.dumps({**told, "job": {**told["job"], "state": "lost"}})
        )
        (beacons / "unfinished.tmp").write_text("{")
        (beacons / "deep.json").write_text("[" * 100_000)
        (beacons / "folder.json").mkdir()
        (beacons / "process.json").write_text(json.dumps({**told, "process": 5}))
        number = {**told["process"], f"{PREFIX}pid": "x", f"{PREFIX}started": ""}
        (beacons / "number.json").write_text(json.dumps({**told, "process": number}))
        for name in ("name", "num_rows", "began_s", "eta_s", "fingerprint"):
            job = {**told["job"], name: ["of another kind"]}
            (beacons / f"{name}.json").write_text(json.dumps({**told, "job": job}))
        assert len(all_jobs(beacons)) == 1


def test_a_disk_that_refuses_costs_no_work(tmp_path: Path, clock: ManualClock) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.touch()
    with Beacon(not_a_folder, job_in(tmp_path / "job"), clock) as beacon:
        beacon.count(1, 2)
    assert all_jobs(not_a_folder) == ()


def test_a_name_that_is_no_text_can_still_be_sent_on(
    tmp_path: Path, beacons: Path, clock: ManualClock
) -> None:
    with Beacon(beacons, job_in(tmp_path / "caf\udce9"), clock):
        assert only(beacons).name.encode() == b"caf?"
