"""Where MLflow shows the runs that the console names."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from outrider.console.snapshot import RunsView
from outrider.serving.kept import Kept, kept_run
from outrider.tracking import store_uri


class KeptRuns:
    """`ports.Runs`: the server's driver keeps its run's id where the gateway finds it."""

    def __init__(self, kept: Kept, view: RunsView) -> None:
        self.view = view
        self._kept = kept
        self._run_id: str | None = None

    def run_id(self) -> str:
        """Asked until it is known, then no more: also that there is none."""
        if self._run_id is None:
            self._run_id = kept_run(self._kept)
        return self._run_id or ""


def runs_view(mlflow_url: str, store: str) -> RunsView:
    """`mlflow_url`: of an MLflow that is open in a browser. `store`: where the runs are recorded,
    as `tracking.uri` names it. Empty: there is none. No password comes with what is shown.
    """
    if not mlflow_url and store_uri.is_served(store):
        mlflow_url = store
    if mlflow_url:
        return RunsView(url=_address(mlflow_url))
    return RunsView(open_command=store_uri.open_command(store) if store else "")


def _address(url: str) -> str:
    """Without a login, and as `/#/runs/` goes behind it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
