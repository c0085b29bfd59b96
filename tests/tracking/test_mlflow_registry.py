"""Releases in real MLflow stores: many at once, over HTTP, and away."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlflow import MlflowClient
from servers import MlflowServer

from outrider.core import Fault
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.registry import NAME, Alias
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.store_uri import database_path

RECORD = ReleaseRecord(
    fingerprint="f" * 64,
    settings={"engine": {"version": "1"}},
    config={"model": {"source": "path:/models/a"}},
)
# Eight processes for the price of one import.
REGISTER = """
import multiprocessing, sys
from pathlib import Path
from mlflow import MlflowClient
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.release_record import ReleaseRecord

uri, spool, record = sys.argv[1:]
everybody = multiprocessing.get_context("fork")
ready = everybody.Barrier(8)

def register(_):
    ready.wait()
    connection = MlflowConnection(uri=uri, experiment="outrider", spool_dir=Path(spool))
    return MlflowRegistry(connection).register(ReleaseRecord.from_json(record), run_id="").number

with everybody.Pool(8) as pool:
    print(pool.map(register, range(8), chunksize=1))
"""


def registry_at(uri: str, tmp_path: Path) -> MlflowRegistry:
    return MlflowRegistry(
        MlflowConnection(uri=uri, experiment="outrider", spool_dir=tmp_path / "spool")
    )


def test_eight_processes_at_once_make_one_version(store_uri: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", REGISTER, store_uri, str(tmp_path / "spool"), RECORD.to_json()]
    printed = subprocess.check_output(words, cwd=tmp_path, text=True, timeout=240)
    assert json.loads(printed) == [1] * 8
    assert len(registry_at(store_uri, tmp_path).versions()) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"store", "spool"}  # no store of MLflow's


def test_a_version_belongs_to_the_run_that_registered_it(store_uri: str, tmp_path: Path) -> None:
    registry = registry_at(store_uri, tmp_path)
    client = MlflowClient(store_uri)
    run_id = client.create_run(client.create_experiment("mine")).info.run_id
    version = registry.register(RECORD, run_id)
    assert version.run_id == run_id
    model = client.get_logged_model(version.tags["logged_model"])
    assert (str(model.status), model.source_run_id) == ("READY", run_id)
    assert model.tags["fingerprint"] == RECORD.fingerprint


def test_a_registry_that_is_away_is_a_fault_of_one_line(store_uri: str, tmp_path: Path) -> None:
    database = database_path(store_uri)
    assert database is not None
    database.write_text("this is not a database")
    with pytest.raises(Fault, match=r"^the registry at sqlite:.*"):
        registry_at(store_uri, tmp_path).versions()


@pytest.fixture
def server(store_uri: str, tmp_path: Path) -> Iterator[str]:
    """The address of a real MLflow server over the store."""
    server = MlflowServer(tmp_path, store_uri)
    server.start()
    yield server.uri
    server.kill()


def test_machines_that_share_a_server_end_up_with_one_version(server: str, tmp_path: Path) -> None:
    """No lock holds them apart: the later one of two takes its own away."""
    registries = [registry_at(server, tmp_path / str(index)) for index in range(4)]
    assert all(list(registry.versions()) == [] for registry in registries)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda registry: registry.register(RECORD, run_id=""), registries))
    assert {version.number for version in made} == {1}
    assert [version.number for version in registries[0].versions()] == [1]
    client = MlflowClient(server)
    mine = [client.get_experiment_by_name("outrider").experiment_id]
    assert len(client.search_logged_models(mine)) == 1
    registries[1].give(Alias.CHAMPION, 1)
    found = registries[2].find(f"models:/{NAME}@champion")
    assert registries[2].record(found) == RECORD
