"""Real stores: MLflow on SQLite, of which each test gets a copy; PostgreSQL."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.tracking.store_uri import sqlite_uri

sys.path.append(str(Path(__file__).parent))  # for `servers`

from servers import Postgres


@pytest.fixture
def store_uri(fresh_store: Path, tmp_path: Path) -> str:
    """The address of an empty store of one's own."""
    path = tmp_path / "store" / "outrider.db"
    path.parent.mkdir()
    shutil.copy(fresh_store, path)
    return sqlite_uri(path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL of our own, whose databases have names of their own."""
    if Postgres.programs() is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()
