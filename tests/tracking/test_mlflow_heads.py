"""Draft heads in a real MLflow store: registered once, found by their name."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient

from outrider.core import Fault
from outrider.models import pinned_head, resolve_head
from outrider.tracking.heads import NAME
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_heads import MlflowHeads
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.registry import Alias
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.store_uri import database_path

TAGS = {"lineage.weights": "w" * 64, "code.revision": "r1"}


def heads_at(uri: str, tmp_path: Path) -> MlflowHeads:
    return MlflowHeads(
        MlflowConnection(uri=uri, experiment="outrider", spool_dir=tmp_path / "spool")
    )


def write_head(folder: Path, weights: bytes) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"kind": "outrider-draft-head"}')
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "report.json").write_text("{}")
    (folder / "training").mkdir()
    (folder / "training" / "checkpoint.safetensors").write_bytes(b"large")
    return folder


def test_a_head_is_registered_once_and_found_by_its_name(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, client = heads_at(store_uri, tmp_path), MlflowClient(store_uri)
    run_id = client.create_run(client.create_experiment("mine")).info.run_id
    one, two = (write_head(tmp_path / name, name.encode()) for name in ("one", "two"))
    first = heads.register(one, "1" * 64, TAGS, run_id)
    assert (first.number, first.alias, first.source) == (1, "champion", f"mlflow:models:/{NAME}/1")
    again = heads.register(one, "1" * 64, TAGS, run_id)
    assert (again.number, again.alias) == (1, "")
    second = heads.register(two, "2" * 64, TAGS, "local-4711")
    assert (second.number, second.alias) == (2, "challenger")

    version = client.get_model_version(NAME, "1")
    assert version.run_id == run_id
    assert TAGS.items() <= version.tags.items()
    assert version.tags["fingerprint"] == "1" * 64
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    for source, folder in ((f"mlflow:models:/{NAME}@champion", one), (second.source, two)):
        found = resolve_head(
            source, shipped=tmp_path, cache_dir=tmp_path / "cache", notice=lambda line: None
        )
        kept = {path.name: path.read_bytes() for path in found.folder.iterdir()}
        files = ("config.json", "model.safetensors")
        assert {name: kept[name] for name in files} == {
            name: (folder / name).read_bytes() for name in files
        }
        assert "checkpoint.safetensors" not in kept


def test_a_head_is_found_in_the_store_that_is_given_whatever_the_environment_says(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = write_head(tmp_path / "one", b"one")
    heads_at(store_uri, tmp_path).register(head, "1" * 64, TAGS, "")
    source, cache_dir = f"mlflow:models:/{NAME}@champion", tmp_path / "cache"
    for named in ("", f"sqlite:///{tmp_path}/another.db"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", named)
        assert pinned_head(source, store_uri) == f"mlflow:models:/{NAME}/1"
        found = resolve_head(
            source, shipped=tmp_path, cache_dir=cache_dir, notice=print, store=store_uri
        )
        assert (found.folder / "model.safetensors").read_bytes() == b"one"
    assert not (tmp_path / "another.db").exists()


def test_the_head_of_the_champion_is_the_champion_of_heads(store_uri: str, tmp_path: Path) -> None:
    heads, client = heads_at(store_uri, tmp_path), MlflowClient(store_uri)
    for digit in "12":
        heads.register(write_head(tmp_path / digit, digit.encode()), digit * 64, TAGS, "")
    releases = MlflowRegistry(
        MlflowConnection(uri=store_uri, experiment="outrider", spool_dir=tmp_path / "spool")
    )
    for number, head in enumerate(["1" * 64, "2" * 64, "", "3" * 64]):
        lineage = {"draft_weights": head} if head else {}
        record = ReleaseRecord(
            fingerprint=f"{number}" * 64, settings={}, config={}, lineage=lineage
        )
        releases.register(record, "")

    def named() -> dict[str, int]:
        found = client.get_registered_model(NAME).aliases
        return {alias: int(number) for alias, number in found.items()}

    assert named() == {"champion": 1, "challenger": 2}
    releases.give(Alias.CHALLENGER, 2)
    assert named() == {"champion": 1, "challenger": 2}
    for version in (2, 2, 3, 4):  # promoted, told so twice; without a head; with one of a folder
        releases.give(Alias.CHAMPION, version)
        assert named() == {"champion": 2, "previous": 1}
    releases.give(Alias.CHAMPION, 1)
    assert named() == {"champion": 1, "previous": 2}


def test_a_store_that_is_away_is_a_fault_of_one_line(store_uri: str, tmp_path: Path) -> None:
    database = database_path(store_uri)
    assert database is not None
    database.write_text("this is not a database")
    with pytest.raises(Fault, match=r"^the registry at sqlite:.*"):
        heads_at(store_uri, tmp_path).register(tmp_path, "1" * 64, {}, "")
