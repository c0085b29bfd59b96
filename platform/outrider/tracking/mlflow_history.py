"""Runs of an MLflow store, read back. It makes nothing: a store that is not there has no runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outrider.core import Fault, UserError
from outrider.tracking import store_uri
from outrider.tracking.entry import LOCAL
from outrider.tracking.guards import quiet
from outrider.tracking.history import RecordedRun
from outrider.tracking.mlflow_client import client_type
from outrider.tracking.mlflow_store import KEY_TAG, KIND_TAG, LASTING, PARENT_TAG

PAGE = 1000  # runs of one answer
NEWEST_FIRST = ("attributes.start_time DESC", "attributes.run_id DESC")


class MlflowHistory:
    """`history.History` over one experiment of the store at `uri`.

    Raises UserError for an address that names no store, and, when first asked, where there is no
    store or no experiment yet.
    """

    def __init__(self, *, uri: str, experiment: str, page: int = PAGE) -> None:
        self._uri = store_uri.checked(uri)
        self._experiment = experiment
        self._page = page
        self._opened: tuple[Any, str] | None = None  # client, id of the experiment

    def runs(self, kinds: Sequence[str] = ()) -> Sequence[RecordedRun]:
        wanted = [f"tags.`{KIND_TAG}` = '{kind}'" for kind in kinds if kind.isidentifier()]
        if kinds and not wanted:
            return []
        with self._asked():
            found = [run for each in wanted or [""] for run in self._pages(each)]
        return sorted((_recorded(run) for run in found), key=_began, reverse=True)

    def run(self, run_id: str) -> RecordedRun:
        with self._asked():
            found = self._find(run_id)
        if found is None:
            raise UserError(f"there is no run {run_id!r} in {self._where}")
        return _recorded(found)

    def fetch(self, run_id: str, artifact: str, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        with self._asked():
            client, _ = self._open()
            return Path(client.download_artifacts(run_id, artifact, str(folder)))

    @property
    def _where(self) -> str:
        return store_uri.redacted(self._uri)

    def _open(self) -> tuple[Any, str]:
        """The client and the experiment's id, looked up once."""
        if self._opened is None:
            database = store_uri.database_path(self._uri)
            if database is not None and not database.exists():
                raise UserError(f"no runs yet: there is no store at {self._where}")
            client = client_type()(tracking_uri=self._uri)
            experiment = client.get_experiment_by_name(self._experiment)
            if experiment is None:
                missing = f"there is no experiment {self._experiment!r} in {self._where}"
                raise UserError(f"no runs yet: {missing}")
            self._opened = client, str(experiment.experiment_id)
        return self._opened

    def _pages(self, wanted: str) -> Iterator[Any]:
        client, experiment_id = self._open()
        token: str | None = ""
        while token is not None:
            page = client.search_runs(
                [experiment_id],
                wanted,
                max_results=self._page,
                order_by=list(NEWEST_FIRST),
                page_token=token or None,
            )
            yield from page
            token = page.token or None

    def _find(self, run_id: str) -> Any:
        if run_id.startswith(LOCAL):
            key = run_id.removeprefix(LOCAL)
            wanted = f"tags.`{KEY_TAG}` = '{key}'"
            return next(self._pages(wanted), None) if key.isalnum() else None
        client, _ = self._open()
        try:
            return client.get_run(run_id)
        except Exception as error:
            if getattr(error, "error_code", "") in LASTING:
                return None
            raise

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Quietly; what the store can't do is one line."""
        try:
            with quiet():
                yield
        except (UserError, Fault):
            raise
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise Fault(f"the tracking store at {self._where}: {said}") from error


def _began(run: RecordedRun) -> tuple[float, str]:
    return run.started_s, run.run_id


def _recorded(run: Any) -> RecordedRun:
    tags = run.data.tags
    return RecordedRun(
        run_id=run.info.run_id,
        name=run.info.run_name or "",
        kind=tags.get(KIND_TAG, ""),
        status=run.info.status,
        started_s=run.info.start_time / 1000,
        parent_id=tags.get(PARENT_TAG, ""),
        params=dict(run.data.params),
        tags=dict(tags),
        metrics=dict(run.data.metrics),
    )
