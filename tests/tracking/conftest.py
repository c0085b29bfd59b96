"""One real MLflow store, made once; each test gets a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from outrider.tracking.store_uri import sqlite_uri


@pytest.fixture(scope="session")
def fresh_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with MLflow's schema (5 s of work) and no run."""
    path = tmp_path_factory.mktemp("store") / "fresh.db"
    MlflowClient(sqlite_uri(path))
    return path


@pytest.fixture
def store_uri(fresh_store: Path, tmp_path: Path) -> str:
    """The address of an empty store of one's own."""
    path = tmp_path / "store" / "outrider.db"
    path.parent.mkdir()
    shutil.copy(fresh_store, path)
    return sqlite_uri(path)
