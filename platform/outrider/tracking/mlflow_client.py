"""The client of one MLflow store: its schema and its experiment are made once, by one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from outrider.telemetry.meters import SPEEDUP_RATIO
from outrider.tracking import store_uri
from outrider.tracking.database_lock import database_locked
from outrider.tracking.guards import locked, quiet

# MLflow reads these when imported or calling. Its own defaults wait minutes for a server that
# is away, and send usage figures to its makers. Its own retries would make a run twice, when only
# the answer was lost: what is sent again is ours to decide. What the user has set stays.
MLFLOW_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "PGCONNECT_TIMEOUT": "10",  # PostgreSQL's client
}
PRIMARY_METRIC = {  # what MLflow's own pages sort and show first
    "mlflow.experiment.primaryMetric.name": SPEEDUP_RATIO.name,
    "mlflow.experiment.primaryMetric.greaterIsBetter": "True",
}


class MlflowConnection:
    """A store at an explicit, absolute `uri`, opened when it is first asked for.

    `spool_dir`: what lies beside it belongs to stores that have no place of their own. Raises
    UserError for a URI that depends on the working directory or names no store; `client` raises
    whatever MLflow raises while the store is away, and may be asked again.
    """

    def __init__(
        self,
        *,
        uri: str,
        experiment: str,
        spool_dir: Path,
        artifact_root: Path | None = None,
    ) -> None:
        self.uri = store_uri.checked(uri)
        self.lock = store_uri.schema_lock(uri, spool_dir)  # None: the server has its own
        self._experiment = experiment
        root = artifact_root or store_uri.default_artifact_root(uri, spool_dir)
        self._artifacts = root.absolute().as_uri() if root else None
        self._client: Any = None
        self._experiment_id = ""

    @property
    def client(self) -> Any:
        """An `MlflowClient` of this store."""
        self.connect()
        return self._client

    @property
    def experiment_id(self) -> str:
        """Of the experiment that runs and releases belong to."""
        self.connect()
        return self._experiment_id

    def connect(self) -> None:
        """Open the store, the first time that it is there.

        One process makes schema and experiment: a fresh SQLite store that four processes open at
        once crashes all four, hence the lock.
        """
        if self._client is None:
            client_of = client_type()
            with locked(self.lock), quiet(), database_locked(self.uri):
                _make_database(client_of, self.uri)
                client = client_of(tracking_uri=self.uri, registry_uri=self.uri)
                self._experiment_id = self._find_or_make_experiment(client)
                self._client = client

    def _find_or_make_experiment(self, client: Any) -> str:
        found = client.get_experiment_by_name(self._experiment)
        if found is None:
            try:
                made = client.create_experiment(self._experiment, self._artifacts, PRIMARY_METRIC)
                return str(made)
            except Exception as error:  # another machine was quicker
                found = client.get_experiment_by_name(self._experiment)
                if found is None:
                    raise error
        for name in PRIMARY_METRIC.keys() - found.tags.keys():
            client.set_experiment_tag(found.experiment_id, name, PRIMARY_METRIC[name])
        return str(found.experiment_id)


def client_type() -> Any:
    """`MlflowClient`, imported with our defaults."""
    for name, value in MLFLOW_DEFAULTS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient


def _make_database(client_of: Any, uri: str) -> None:
    """Make a SQLite file under another name: one half made would never open again."""
    database = store_uri.database_path(uri)
    if database is None or database.exists():
        return
    fresh = database.with_name(f"{database.name}.new")
    for left in (fresh, fresh.with_name(f"{fresh.name}-journal")):
        left.unlink(missing_ok=True)
    client_of(tracking_uri=store_uri.sqlite_uri(fresh))
    fresh.replace(database)
