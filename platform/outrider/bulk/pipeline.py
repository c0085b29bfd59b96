"""The job's driver: index -> manifest -> Ray Data -> record -> assemble -> report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing as closing_iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.bulk.assemble import Assembled, assemble
from outrider.bulk.beacon import Beacon, job_of
from outrider.bulk.book import Book, polled
from outrider.bulk.folder import JobFolder, Task, num_settled, open_job, settle
from outrider.bulk.index import Index, build_index
from outrider.bulk.limits import check_settings
from outrider.bulk.live import read_tally
from outrider.bulk.manifest import Identity, Manifest, Session
from outrider.bulk.ports import EngineFactory
from outrider.bulk.progress import Pace, ProgressView
from outrider.bulk.report import (
    Report,
    kind_reports,
    load_report,
    parity_report,
    total_report,
)
from outrider.bulk.worker import WorkOrder
from outrider.config.schema import BulkJob
from outrider.core import Clock, SystemClock
from outrider.tracking.fingerprint import plain
from outrider.tracking.lifecycle import closing, status_of, terminate_as_exception
from outrider.tracking.release import Release
from outrider.tracking.released_run import start_released
from outrider.tracking.tracker import NoTracker, Run, RunStatus, Tracker


def run_job(
    job: BulkJob,
    *,
    make_engine: EngineFactory,
    release: Release,
    tracker: Tracker | None = None,
    clock: Clock | None = None,
    console: Console | None = None,
    beacons_dir: Path | None = None,
) -> Report:
    """Do the whole job, or what is left of it, and return its report.

    `beacons_dir`: where it says that it is there, for the operator's console (`glance`).

    Raises UserError (exit 2) and Fault (exit 1) with one line; KeyboardInterrupt (130) and
    `config.interruption.Terminated` (143) after the run was closed as KILLED. In every case what
    was done is kept and the same command goes on from there.
    """
    check_settings(job)
    driver = _Driver(
        job,
        JobFolder(Path(job.bulk.job_dir).absolute()),
        release,
        make_engine,
        tracker or NoTracker(),
        clock or SystemClock(),
        console or Console(stderr=True),
        beacons_dir,
    )
    with terminate_as_exception(), driver.folder.locked():
        return driver.run()


@dataclass(slots=True)
class _Driver:
    job: BulkJob
    folder: JobFolder
    release: Release
    make_engine: EngineFactory
    tracker: Tracker
    clock: Clock
    console: Console
    beacons_dir: Path | None

    def run(self) -> Report:
        began = self.clock.monotonic()
        index = self._index()
        manifest = open_job(
            self.folder,
            self._identity(index),
            new_attempt=self.job.bulk.new_attempt,
            now=self.clock.time(),
        )
        tasks = settle(self.folder, manifest, index)
        if not tasks and self._is_whole():
            self.console.print(
                f"nothing to do: this job has finished; remove {self.folder.root} to run it anew",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
            return load_report(self.folder.report)
        session = Session(began=self.clock.time(), fingerprint=self.release.fingerprint)
        manifest.sessions.append(session)
        with closing(self._start_run(manifest)) as run, self._timed(manifest, session, began):
            session.run_id = run.run_id
            manifest.save()
            job = job_of(self.folder.root, manifest, session)
            with Beacon(self.beacons_dir, job, self.clock) as beacon:
                if tasks:
                    self._decode(manifest, index, tasks, run, beacon)
                return self._finish(manifest, session, began, run, beacon)

    def _is_whole(self) -> bool:
        outputs = [self.folder.output, self.folder.errors, self.folder.report]
        if self.job.bulk.parquet:
            outputs.append(self.folder.table)
        return all(path.exists() for path in outputs)

    def _index(self) -> Index:
        bulk = self.job.bulk
        source = Path(bulk.input).absolute()
        return build_index(
            source, self.folder.scratch, shard_rows=bulk.shard_rows, limit=bulk.limit
        )

    def _identity(self, index: Index) -> Identity:
        bulk = self.job.bulk
        layout = {"shard_rows": bulk.shard_rows, "limit": bulk.limit, "baseline": bulk.baseline}
        settings = {**self.release.settings, "bulk": layout}
        return Identity(
            fingerprint=self.release.fingerprint,
            settings=_plain_mapping(settings),
            input_path=str(Path(bulk.input).absolute()),
            input_digest=index.digest,
            num_rows=index.num_rows,
            num_shards=index.num_shards,
        )

    def _start_run(self, manifest: Manifest) -> Run:
        identity = manifest.identity
        release = self.release.on_data(source_data=identity.input_digest)
        params = {
            **identity.settings,
            "input": {"path": identity.input_path, "digest": identity.input_digest},
        }
        name = f"bulk {self.folder.root.name}"
        return start_released(self.tracker, release, name=name, kind="bulk", params=params)

    @contextmanager
    def _timed(self, manifest: Manifest, session: Session, began: float) -> Iterator[None]:
        """Write down how the session ended and how long it took, however it ends."""
        status = RunStatus.FINISHED
        try:
            yield
        except BaseException as error:
            status = status_of(error)
            raise
        finally:
            session.status = str(status)
            session.duration_s = self.clock.monotonic() - began
            manifest.save()

    def _decode(
        self, manifest: Manifest, index: Index, tasks: list[Task], run: Run, beacon: Beacon
    ) -> None:
        from outrider.bulk.ray_stream import bulk_session, stream_records  # Ray takes a second

        order = WorkOrder(
            job=self.job,
            root=str(self.folder.root),
            index=index,
            fingerprint=self.release.fingerprint,
            model=self.release.model,
            make_engine=self.make_engine,
        )
        book = Book(manifest, self.clock, run, self.job.tracking.window_s)
        pace = Pace(index.num_rows, num_settled(manifest, tasks), self.clock.monotonic())
        log = self.folder.scratch / "ray.log"
        with ProgressView(self.console, self.clock) as view, bulk_session(self.job.bulk, log):
            view.say(f"{len(tasks)} of {index.num_shards} shards to do; loading the model ...")
            records = stream_records(order, tasks)
            with closing_iterator(polled(records, len(tasks))) as heard:
                for record in heard:
                    tally = read_tally(self.folder.live)
                    if record is not None:
                        book.enter(record)
                    book.window(tally)
                    num_recorded = manifest.num_done + manifest.num_failed
                    glance = pace.glance(tally, num_recorded, self.clock.monotonic())
                    view.show(glance)
                    beacon.progress(glance, tally, manifest.num_failed)
            tally = read_tally(self.folder.live)
            book.window(tally, last=True)
            beacon.progress(glance, tally, manifest.num_failed)
        manifest.save()

    def _finish(
        self, manifest: Manifest, session: Session, began: float, run: Run, beacon: Beacon
    ) -> Report:
        made = assemble(self.folder, manifest, parquet=self.job.bulk.parquet)
        beacon.count(made.num_done, made.num_failed)
        session.duration_s = self.clock.monotonic() - began
        report = self._report(manifest, made, run)
        report.save(self.folder.report)
        run.log_final(report.metrics())
        session.status = str(RunStatus.FINISHED)
        manifest.save()
        for path in (self.folder.report, self.folder.manifest, self.folder.errors):
            run.log_artifact(path)
        return report

    def _report(self, manifest: Manifest, made: Assembled, run: Run) -> Report:
        identity = manifest.identity
        files = {"output": self.folder.output, "errors": self.folder.errors}
        if self.job.bulk.parquet:
            files["table"] = self.folder.table
        files["report"] = self.folder.report
        return Report(
            num_rows=identity.num_rows,
            num_rows_done=made.num_done,
            num_rows_failed=made.num_failed,
            errors_by_code=dict(sorted(made.errors.items())),
            total=total_report(made.figures),
            by_kind=kind_reports(made.figures),
            parity=parity_report(made.figures, self.job.bulk.near_tie),
            duration_s=sum(session.duration_s for session in manifest.sessions),
            num_sessions=len(manifest.sessions),
            fingerprint=identity.fingerprint,
            fingerprints=manifest.used_fingerprints,
            input={"path": identity.input_path, "digest": identity.input_digest},
            run_id=run.run_id,
            open_command=self.tracker.open_command,
            files={name: str(path) for name, path in files.items()},
            conditions=_plain_mapping(self.release.conditions),
        )


def _plain_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    found = plain(value)
    assert isinstance(found, dict)
    return found
