"""Runs in MLflow."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from outrider.core import Clock, SystemClock
from outrider.tracking import store_uri
from outrider.tracking.entry import (
    Closed,
    Entry,
    Figures,
    FileKept,
    Opened,
    Tagged,
    TextKept,
)
from outrider.tracking.fingerprint import flatten
from outrider.tracking.guards import translated
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.names import MAX_PARAM, fitting
from outrider.tracking.outbox import Outbox, RejectedError
from outrider.tracking.outbox_run import CLOSE_WAIT_S, OutboxRun
from outrider.tracking.process import PREFIX, Process
from outrider.tracking.spool import Spool
from outrider.tracking.tracker import NO_TAGS, RunStatus

Item = TypeVar("Item")

KEY_TAG = "outrider.key"  # ours, known before MLflow's run id is
KIND_TAG = "outrider.kind"
MAX_BATCH = 100  # params or tags of one call
START_WAIT_S = 120.0  # a store that is away answers sooner
# Errors that come back however often the same entry is sent.
LASTING = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"})


class MlflowTracker:
    """Starts runs in an MLflow store at an explicit, absolute `uri`.

    Raises UserError for a URI that depends on the working directory or names no store. A store
    that is away raises nothing: what it could not take waits in `spool_dir`.
    """

    def __init__(
        self,
        *,
        uri: str,
        experiment: str,
        spool_dir: Path,
        artifact_root: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._connection = MlflowConnection(
            uri=uri, experiment=experiment, spool_dir=spool_dir, artifact_root=artifact_root
        )
        self._clock = clock or SystemClock()
        self._process = Process.current()
        store = MlflowStore(self._connection, self._process, self._clock)
        self._outbox = Outbox(store, Spool(spool_dir), self._clock)

    @property
    def open_command(self) -> str:
        return store_uri.open_command(self._connection.uri)

    def start_run(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> OutboxRun:
        short, texts = fitting(flatten(params), limit=MAX_PARAM, folder="params")
        key = uuid.uuid4().hex
        own = {KEY_TAG: key, KIND_TAG: kind, **self._process.to_tags()}
        opened = Opened(key=key, name=name, at_s=self._clock.time(), tags=own, params=short)
        run = OutboxRun(self._outbox, self._outbox.open(opened), self._clock)
        run.set_tags(tags)
        for artifact, text in texts.items():
            run.log_text(text, name=artifact)
        run.wait_for_id(START_WAIT_S)
        return run

    def close(self) -> None:
        self._outbox.flush(CLOSE_WAIT_S)


class MlflowStore:
    """`outbox.Store` over `MlflowClient`: explicit run ids, never the fluent API."""

    def __init__(self, connection: MlflowConnection, process: Process, clock: Clock) -> None:
        self._connection = connection
        self._process = process
        self._clock = clock

    def connect(self) -> None:
        with translated():
            self._connection.connect()

    def open(self, opened: Opened) -> str:
        with translated():
            client = self._connection.client
            run_id = (
                self._find(opened.key)
                or client.create_run(
                    self._connection.experiment_id,
                    start_time=_milliseconds(opened.at_s),
                    run_name=opened.name,
                    tags=dict(opened.tags),
                ).info.run_id
            )
            params = [_entities().Param(*item) for item in opened.params.items()]
            for batch in _batches(params):
                client.log_batch(run_id, params=batch)
            return str(run_id)

    def write(self, run_id: str, entry: Entry) -> None:
        with translated(lasting=LASTING):
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
            case Figures():
                at_ms = _milliseconds(entry.at_s)
                figures = [
                    _entities().Metric(name, value, at_ms, entry.step)
                    for name, value in entry.metrics.items()
                ]
                for batch in _batches(figures):
                    client.log_batch(run_id, metrics=batch)
            case Tagged():
                tags = [_entities().RunTag(*item) for item in entry.tags.items()]
                for batch in _batches(tags):
                    client.log_batch(run_id, tags=batch)
            case FileKept():
                if not Path(entry.path).is_file():
                    raise RejectedError(f"{entry.path} is not there any more")
                client.log_artifact(run_id, entry.path, entry.folder or None)
            case TextKept():
                client.log_text(run_id, entry.text, entry.name)
            case Closed():
                client.set_terminated(run_id, entry.status, _milliseconds(entry.at_s))

    def _find(self, key: str) -> str | None:
        found = self._connection.client.search_runs(
            [self._connection.experiment_id], f"tags.`{KEY_TAG}` = '{key}'", max_results=1
        )
        return found[0].info.run_id if found else None

    def _running_here(self) -> Iterator[Any]:
        query = f"attributes.status = 'RUNNING' AND tags.`{PREFIX}host` = '{self._process.host}'"
        token: str | None = ""
        while token is not None:
            page = self._connection.client.search_runs(
                [self._connection.experiment_id], query, max_results=1000, page_token=token or None
            )
            yield from page
            token = page.token or None


def _entities() -> Any:
    from mlflow import entities

    return entities


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[at : at + MAX_BATCH] for at in range(0, len(items), MAX_BATCH))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
