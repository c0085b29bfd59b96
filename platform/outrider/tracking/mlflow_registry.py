"""Releases in MLflow: a LoggedModel holds the record, a registered model version names it.

MLflow 3.17 returns no aliases from `search_model_versions`: they are read off the registered model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from outrider.core import Fault, UserError
from outrider.tracking.guards import locked, quiet
from outrider.tracking.mlflow_aliases import (
    FINGERPRINT_TAG,
    aliases_of,
    crown_head,
    give_alias,
)
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.registry import NAME, Alias, Version, chosen, uri_of
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.store_uri import is_served, redacted

MODEL_TAG = "logged_model"
MODEL_TYPE = "outrider-release"
RECORD = "release.json"
CONFIG = "config.yaml"
PAGE = 1000  # versions of one answer
PRESENT = "RESOURCE_ALREADY_EXISTS"


class MlflowRegistry:
    """`registry.Registry` over an MLflow store. Processes on one machine take turns to write."""

    def __init__(self, connection: MlflowConnection) -> None:
        self._connection = connection
        lock = connection.lock
        self._lock = lock.with_suffix(".registry.lock") if lock else None

    def register(self, record: ReleaseRecord, run_id: str) -> Version:
        with self._asked() as client:
            found = self._with_fingerprint(client, record.fingerprint)
            if found:
                return found[0]
            with locked(self._lock):
                return self._find_or_make(client, record, run_id)

    def find(self, uri: str) -> Version:
        return chosen(uri, self.versions())

    def record(self, version: Version) -> ReleaseRecord:
        with self._asked() as client:
            source = client.get_model_version(NAME, str(version.number)).source
            return ReleaseRecord.from_json(self._download(f"{source}/{RECORD}"))

    def versions(self) -> Sequence[Version]:
        with self._asked() as client:
            return self._search(client, f"name = '{NAME}'")

    def give(self, alias: Alias, number: int) -> None:
        with self._asked() as client, locked(self._lock):
            version = chosen(uri_of(number), self._search(client, f"name = '{NAME}'"))
            give_alias(client, NAME, alias, number)
            if alias is Alias.CHAMPION:
                crown_head(client, version.tags)

    def set_tags(self, number: int, tags: Mapping[str, str]) -> None:
        with self._asked() as client:
            for name, value in tags.items():
                client.set_model_version_tag(NAME, str(number), name, value)

    def _find_or_make(self, client: Any, record: ReleaseRecord, run_id: str) -> Version:
        """Look again behind the making: on a server, another machine may have been as quick."""
        found = self._with_fingerprint(client, record.fingerprint)
        if not found:
            made = self._make(client, record, run_id)
            found = self._with_fingerprint(client, record.fingerprint)
            if found[0].number != int(made.version):
                client.delete_model_version(NAME, made.version)
                client.delete_logged_model(made.tags[MODEL_TAG])
        return found[0]

    def _make(self, client: Any, record: ReleaseRecord, run_id: str) -> Any:
        _make_registered_model(client)
        model = client.create_logged_model(
            self._connection.experiment_id,
            name=f"{NAME}-{record.fingerprint[:12]}",
            source_run_id=run_id or None,
            tags={FINGERPRINT_TAG: record.fingerprint},
            model_type=MODEL_TYPE,
        )
        with tempfile.TemporaryDirectory() as folder:
            _write(record, Path(folder))
            client.log_model_artifacts(model.model_id, folder)
        client.finalize_logged_model(model.model_id, "READY")
        # Given the id of a model without a run, a database store would ask MLflow's global store.
        is_known = bool(run_id) or is_served(self._connection.uri)
        return client.create_model_version(
            NAME,
            source=model.artifact_location,
            run_id=run_id or None,
            tags=_tags(record) | {MODEL_TAG: model.model_id},
            model_id=model.model_id if is_known else None,
        )

    def _with_fingerprint(self, client: Any, fingerprint: str) -> Sequence[Version]:
        """Oldest first: the first one counts."""
        wanted = f"name = '{NAME}' AND tags.`{FINGERPRINT_TAG}` = '{fingerprint}'"
        return self._search(client, wanted)

    def _search(self, client: Any, wanted: str) -> Sequence[Version]:
        found = list(_pages(client, wanted))
        aliases = aliases_of(client, NAME) if found else {}
        versions = (_version(each, aliases) for each in found)
        return sorted(versions, key=lambda version: version.number)

    def _download(self, artifact: str) -> str:
        from mlflow.artifacts import download_artifacts

        with tempfile.TemporaryDirectory() as folder:
            path = download_artifacts(artifact, dst_path=folder, tracking_uri=self._connection.uri)
            return Path(path).read_text(encoding="utf-8")

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        """The client, quietly; what the store can't do is one line."""
        try:
            with quiet():
                yield self._connection.client
        except (UserError, Fault):
            raise
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise Fault(f"the registry at {redacted(self._connection.uri)}: {said}") from error


def _make_registered_model(client: Any) -> None:
    try:
        client.create_registered_model(NAME, description="Releases of Outrider")
    except Exception as error:
        if getattr(error, "error_code", "") != PRESENT:
            raise


def _pages(client: Any, wanted: str) -> Iterator[Any]:
    token: str | None = ""
    while token is not None:
        page = client.search_model_versions(wanted, max_results=PAGE, page_token=token or None)
        yield from page
        token = page.token or None


def _version(found: Any, aliases: Mapping[str, int]) -> Version:
    number = int(found.version)
    return Version(
        number=number,
        fingerprint=found.tags.get(FINGERPRINT_TAG, ""),
        aliases=tuple(sorted(alias for alias, held in aliases.items() if held == number)),
        run_id=found.run_id or "",
        created_s=found.creation_timestamp / 1000,
        tags=dict(found.tags),
    )


def _tags(record: ReleaseRecord) -> dict[str, str]:
    tags = {
        FINGERPRINT_TAG: record.fingerprint,
        "release.model": str(record.config.get("model", {}).get("source", "")),
        "code.lock_sha256": record.lock_sha256,
        "code.revision": record.revision,
        **record.tags,
    }
    return {name: value for name, value in tags.items() if value}


def _write(record: ReleaseRecord, folder: Path) -> None:
    config = yaml.safe_dump(dict(record.config), sort_keys=False, allow_unicode=True)
    (folder / RECORD).write_text(record.to_json(), encoding="utf-8")
    (folder / CONFIG).write_text(config, encoding="utf-8")
