"""Draft heads in MLflow: a LoggedModel holds the files, a registered model version names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outrider.core import Fault
from outrider.tracking.entry import LOCAL
from outrider.tracking.guards import locked, quiet
from outrider.tracking.heads import FILES, NAME, HeadVersion
from outrider.tracking.mlflow_aliases import FINGERPRINT_TAG, aliases_of, oldest_with
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MODEL_TAG, PRESENT
from outrider.tracking.registry import Alias
from outrider.tracking.store_uri import is_served, redacted

MODEL_TYPE = "outrider-draft-head"


class MlflowHeads:
    """`heads.HeadRegistry` over an MLflow store. Processes on one machine take turns."""

    def __init__(self, connection: MlflowConnection) -> None:
        self._connection = connection
        lock = connection.lock
        self._lock = lock.with_suffix(".registry.lock") if lock else None

    def register(
        self, folder: Path, fingerprint: str, tags: Mapping[str, str], run_id: str
    ) -> HeadVersion:
        known_run = None if run_id.startswith(LOCAL) else run_id or None
        with self._asked() as client, locked(self._lock):
            found = oldest_with(client, NAME, fingerprint)
            if found is not None:
                return HeadVersion(number=found, alias="")
            _make_registered_model(client)
            number = self._make(client, folder, {**tags, FINGERPRINT_TAG: fingerprint}, known_run)
            has_champion = Alias.CHAMPION in aliases_of(client, NAME)
            alias = Alias.CHALLENGER if has_champion else Alias.CHAMPION
            client.set_registered_model_alias(NAME, str(alias), str(number))
            return HeadVersion(number=number, alias=str(alias))

    def _make(self, client: Any, folder: Path, tags: Mapping[str, str], run_id: str | None) -> int:
        model = client.create_logged_model(
            self._connection.experiment_id,
            name=f"{NAME}-{tags[FINGERPRINT_TAG][:12]}",
            source_run_id=run_id,
            tags=dict(tags),
            model_type=MODEL_TYPE,
        )
        for name in FILES:
            client.log_model_artifact(model.model_id, str(folder / name))
        client.finalize_logged_model(model.model_id, "READY")
        # Given the id of a model without a run, a database store would ask MLflow's global store.
        is_known = bool(run_id) or is_served(self._connection.uri)
        made = client.create_model_version(
            NAME,
            source=model.artifact_location,
            run_id=run_id,
            tags={**tags, MODEL_TAG: model.model_id},
            model_id=model.model_id if is_known else None,
        )
        return int(made.version)

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        try:
            with quiet():
                yield self._connection.client
        except Fault:
            raise
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise Fault(f"the registry at {redacted(self._connection.uri)}: {said}") from error


def _make_registered_model(client: Any) -> None:
    try:
        client.create_registered_model(NAME, description="Draft heads of Outrider")
    except Exception as error:
        if getattr(error, "error_code", "") != PRESENT:
            raise
