"""A store's address is explicit and absolute, or refused by the key that holds it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from outrider.core import UserError
from outrider.tracking import store_uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "sqlite:///outrider.db",
        "sqlite:///runs/outrider.db",
        "sqlite://",
        "sqlite:///:memory:",
        "runs",
        "/absolute/folder",
        "file:///absolute/folder",
        "databricks",
        "http:///nowhere",
        "postgres://db/outrider",  # SQLAlchemy knows postgresql only
    ],
)
def test_what_is_relative_or_no_store_is_refused_by_its_key(uri: str) -> None:
    with pytest.raises(UserError, match=r"tracking\.uri.*absolute") as refused:
        store_uri.checked(uri)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "uri",
    ["http://localhost:5000", "https://mlflow.example", "postgresql+psycopg2://u:p@db/outrider"],
)
def test_servers_and_databases_are_taken_as_they_are(uri: str) -> None:
    assert store_uri.checked(uri) == uri
    assert store_uri.database_path(uri) is None


def test_the_folder_of_a_fresh_store_is_made(tmp_path: Path) -> None:
    uri = store_uri.sqlite_uri(tmp_path / "a b" / "runs" / "outrider.db")
    assert store_uri.checked(uri) == uri
    assert (tmp_path / "a b" / "runs").is_dir()
    assert store_uri.default_artifact_root(uri, tmp_path) == tmp_path / "a b" / "runs" / "artifacts"


def test_a_folder_in_the_place_of_the_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="names a folder"):
        store_uri.checked(store_uri.sqlite_uri(tmp_path))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"tracking\.uri"):
        store_uri.checked(store_uri.sqlite_uri(tmp_path / "file" / "outrider.db"))


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://ann:secret@db:5432/outrider",
        "postgresql://db/outrider?user=ann&password=secret&sslmode=require",
        "https://ann:secret@mlflow.example/",
        "mysql://ann:secret@db/outrider",
    ],
)
def test_a_password_is_never_shown(uri: str) -> None:
    assert "secret" not in store_uri.open_command(uri)
    assert "ann" in store_uri.open_command(uri)
    with pytest.raises(UserError) as refused:
        store_uri.checked(uri.replace(uri.split(":")[0], "oracle"))
    assert "secret" not in str(refused.value)


def test_the_command_that_opens_the_runs_survives_a_shell() -> None:
    words = shlex.split(store_uri.open_command("sqlite:////tmp/a b/outrider.db"))
    assert Path(words[0]).name == "mlflow"
    assert words[1:] == ["ui", "--backend-store-uri", "sqlite:////tmp/a b/outrider.db"]
