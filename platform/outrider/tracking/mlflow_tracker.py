"""Starts runs in MLflow."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

from outrider.core import Clock, SystemClock
from outrider.tracking import store_uri
from outrider.tracking.entry import Opened
from outrider.tracking.fingerprint import flatten
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_store import KEY_TAG, KIND_TAG, MlflowStore
from outrider.tracking.names import MAX_PARAM, fitting
from outrider.tracking.outbox import Outbox
from outrider.tracking.outbox_run import CLOSE_WAIT_S, OutboxRun
from outrider.tracking.process import Process
from outrider.tracking.spool import Spool
from outrider.tracking.tracker import NO_TAGS, Run

START_WAIT_S = 120.0  # while others make the schema; a store that is away answers sooner


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
        parent: Run | None = None,
    ) -> OutboxRun:
        """As `Tracker.start_run`. Waits for the store at most START_WAIT_S."""
        return self._start(name, kind, params, tags, parent=parent.run_id if parent else "")

    def resume_run(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> OutboxRun:
        """As `Tracker.resume_run`. Waits for the store at most START_WAIT_S."""
        return self._start(name, kind, params, tags, resumes=run_id)

    def close(self) -> None:
        self._outbox.flush(CLOSE_WAIT_S)

    def _start(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str],
        *,
        parent: str = "",
        resumes: str = "",
    ) -> OutboxRun:
        short, texts = fitting(flatten(params), limit=MAX_PARAM, folder="params")
        key = uuid.uuid4().hex
        opened = Opened(
            key=key,
            name=name,
            at_s=self._clock.time(),
            tags={KEY_TAG: key, KIND_TAG: kind, **self._process.to_tags()},
            params=short,
            parent=parent,
            resumes=resumes,
        )
        run = OutboxRun(self._outbox, self._outbox.open(opened), self._clock)
        run.set_tags(tags)
        for artifact, text in texts.items():
            run.log_text(text, name=artifact)
        run.wait_for_id(START_WAIT_S)
        return run
