"""Real stores: MLflow on SQLite, of which each test gets a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from outrider.tracking.store_uri import sqlite_uri


@pytest.fixture
def store_uri(fresh_store: Path, tmp_path: Path) -> str:
    """The address of an empty store of one's own."""
    path = tmp_path / "store" / "outrider.db"
    path.parent.mkdir()
    shutil.copy(fresh_store, path)
    return sqlite_uri(path)
