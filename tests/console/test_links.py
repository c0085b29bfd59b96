"""Where the runs are shown, and which one is this server's."""

from __future__ import annotations

import pytest

from outrider.console.links import KeptRuns, runs_view
from outrider.console.snapshot import RunsView
from outrider.serving.kept import MemoryKept, forget_all, keep_run


@pytest.mark.parametrize(
    ("mlflow_url", "store", "url"),
    [
        ("http://localhost:5000/", "sqlite:////runs/outrider.db", "http://localhost:5000"),
        ("", "https://ada:s3cret@mlflow.example/base/", "https://mlflow.example/base"),
        ("http://see.example", "http://write.example", "http://see.example"),
        ("http://ada:s3cret@[::1]:5000/#/experiments", "", "http://[::1]:5000"),
    ],
)
def test_an_mlflow_that_is_served_has_links_without_a_login(
    mlflow_url: str, store: str, url: str
) -> None:
    assert runs_view(mlflow_url, store) == RunsView(url=url)


def test_a_database_has_a_command_that_opens_it() -> None:
    view = runs_view("", "sqlite:////runs/outrider.db")
    assert view.url == ""
    assert view.open_command.endswith("ui --backend-store-uri sqlite:////runs/outrider.db")


def test_where_nothing_is_recorded_nothing_is_shown() -> None:
    assert runs_view("", "") == RunsView()


def test_the_server_s_run_is_known_once_its_driver_has_kept_it() -> None:
    kept = MemoryKept()
    runs = KeptRuns(kept, RunsView())
    assert runs.run_id() == ""
    keep_run(kept, "run-7")
    assert runs.run_id() == "run-7"
    forget_all(kept)
    assert runs.run_id() == "run-7"  # asked once


def test_a_server_that_records_nothing_is_not_asked_again() -> None:
    kept = MemoryKept()
    runs = KeptRuns(kept, RunsView())
    keep_run(kept, "")
    assert runs.run_id() == ""
    keep_run(kept, "run-7")
    assert runs.run_id() == ""
