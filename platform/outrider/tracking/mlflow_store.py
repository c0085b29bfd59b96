"""Where a run's entries go: MLflow, over one connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from outrider.core import Clock, Fault
from outrider.tracking.entry import (
    LOCAL,
    Closed,
    Entry,
    Figures,
    FileKept,
    Opened,
    Registered,
    Tagged,
    TextKept,
)
from outrider.tracking.guards import translated
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.names import valid_name
from outrider.tracking.outbox import RejectedError
from outrider.tracking.process import PREFIX, Process
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.tracker import RunStatus

Item = TypeVar("Item")

KEY_TAG = "outrider.key"  # ours, known before MLflow's run id is
KIND_TAG = "outrider.kind"
PARENT_TAG = "mlflow.parentRunId"
VERSION_TAG = "release.version"
FINGERPRINT_TAG = "release.fingerprint"
MAX_BATCH = 100  # params or tags of one call
MAX_METRICS = 1000  # of one call
# Errors that come back however often the same entry is sent.
LASTING = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"})
NO_REGISTRY = frozenset({"PERMISSION_DENIED", "ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED"})


class MlflowStore:
    """`outbox.Store` over `MlflowClient`: explicit run ids, never the fluent API."""

    def __init__(self, connection: MlflowConnection, process: Process, clock: Clock) -> None:
        self._connection = connection
        self._registry = MlflowRegistry(connection)
        self._process = process
        self._clock = clock

    def connect(self) -> None:
        with translated():
            self._connection.connect()

    def open(self, opened: Opened) -> str:
        with translated():
            resumed = self._known(opened.resumes)
            if resumed is not None:
                self._resume(resumed, opened)
                return str(resumed.info.run_id)
            run_id = self._find(opened.key) or self._create(opened)
            self._log_params(run_id, opened.params)
            return run_id

    def write(self, run_id: str, entries: Sequence[Entry]) -> None:
        with translated(lasting=LASTING):
            figures = [entry for entry in entries if isinstance(entry, Figures)]
            if figures:
                self._log_figures(run_id, figures)
            else:
                for entry in entries:
                    self._write(self._connection.client, run_id, entry)

    def sweep(self) -> None:
        with translated():
            client = self._connection.client
            for run in self._running_here():
                owner = Process.from_tags(run.data.tags)
                if owner is not None and owner.is_gone(self._process):
                    client.set_terminated(
                        run.info.run_id, RunStatus.KILLED, _milliseconds(self._clock.time())
                    )

    def _write(self, client: Any, run_id: str, entry: Entry) -> None:
        match entry:
            case Tagged():
                self._log_tags(run_id, entry.tags)
            case FileKept():
                if not Path(entry.path).is_file():
                    raise RejectedError(f"{entry.path} is not there any more")
                client.log_artifact(run_id, entry.path, entry.folder or None)
            case TextKept():
                client.log_text(run_id, entry.text, entry.name)
            case Registered():
                self._register(run_id, _record(entry))
            case Closed():
                client.set_terminated(run_id, entry.status, _milliseconds(entry.at_s))

    def _create(self, opened: Opened) -> str:
        tags = dict(opened.tags)
        if opened.resumes.startswith(LOCAL):  # lost; found by its key from now on
            tags[KEY_TAG] = opened.resumes.removeprefix(LOCAL)
        parent = self._known(opened.parent)
        if parent is not None:
            tags[PARENT_TAG] = str(parent.info.run_id)
        created = self._connection.client.create_run(
            self._connection.experiment_id,
            start_time=_milliseconds(opened.at_s),
            run_name=opened.name,
            tags=tags,
        )
        return str(created.info.run_id)

    def _resume(self, run: Any, opened: Opened) -> None:
        """Ours first, then running: in between, a sweep finds nobody who is gone."""
        run_id, has = run.info.run_id, run.data.params
        told = {
            valid_name(f"resumed.{name}"): value
            for name, value in opened.params.items()
            if has.get(name, value) != value
        }
        own = {name: value for name, value in opened.tags.items() if name != KEY_TAG}
        self._log_tags(run_id, own | told)
        self._connection.client.update_run(run_id, status="RUNNING")
        fresh = {name: value for name, value in opened.params.items() if name not in has}
        self._log_params(run_id, fresh)

    def _log_figures(self, run_id: str, figures: Sequence[Figures]) -> None:
        metrics = [
            _entities().Metric(name, value, _milliseconds(each.at_s), each.step)
            for each in figures
            for name, value in each.metrics.items()
        ]
        for batch in _batches(metrics, MAX_METRICS):
            self._connection.client.log_batch(run_id, metrics=batch)

    def _log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        for batch in _batches([_entities().Param(*item) for item in params.items()]):
            self._connection.client.log_batch(run_id, params=batch)

    def _log_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        for batch in _batches([_entities().RunTag(*item) for item in tags.items()]):
            self._connection.client.log_batch(run_id, tags=batch)

    def _register(self, run_id: str, record: ReleaseRecord) -> None:
        with translated(lasting=LASTING | NO_REGISTRY):
            version = self._registry.register(record, run_id)
        told = {VERSION_TAG: str(version.number), FINGERPRINT_TAG: record.fingerprint}
        self._log_tags(run_id, told)

    def _known(self, run_id: str) -> Any:
        """The run of an id as `Run.run_id` told it; None where the store has none."""
        if run_id.startswith(LOCAL):
            run_id = self._find(run_id.removeprefix(LOCAL)) or ""
        if not run_id:
            return None
        try:
            run = self._connection.client.get_run(run_id)
        except Exception as error:
            if getattr(error, "error_code", "") in LASTING:
                return None
            raise
        return run if run.info.lifecycle_stage == "active" else None

    def _find(self, key: str) -> str | None:
        """The id of the run with our key. A key comes from a user's folder: quoted with care."""
        if not key.isalnum():
            return None
        found = self._connection.client.search_runs(
            [self._connection.experiment_id], f"tags.`{KEY_TAG}` = '{key}'", max_results=1
        )
        return str(found[0].info.run_id) if found else None

    def _running_here(self) -> Iterator[Any]:
        query = f"attributes.status = 'RUNNING' AND tags.`{PREFIX}host` = '{self._process.host}'"
        token: str | None = ""
        while token is not None:
            page = self._connection.client.search_runs(
                [self._connection.experiment_id], query, max_results=1000, page_token=token or None
            )
            yield from page
            token = page.token or None


def _record(entry: Registered) -> ReleaseRecord:
    try:
        return ReleaseRecord.from_json(entry.record)
    except Fault as fault:  # of another version, out of an old spool
        raise RejectedError(str(fault)) from fault


def _entities() -> Any:
    from mlflow import entities

    return entities


def _batches(items: Sequence[Item], most: int = MAX_BATCH) -> Iterator[Sequence[Item]]:
    return (items[at : at + most] for at in range(0, len(items), most))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
