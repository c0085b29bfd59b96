"""Weights out of a registered model's version: fetched once, and the same in every process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from outrider.core import UserError
from outrider.models import ModelFiles, pinned, resolve

CHOSEN = "mlflow:models:/tiny@chosen"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, fresh_store: Path) -> str:
    """A store with three versions: as a folder, as the transformers flavour, and half a model."""
    place = tmp_path_factory.mktemp("store")
    shutil.copy(fresh_store, place / "mlflow.db")
    store = f"sqlite:///{place}/mlflow.db"
    flavour = place / "flavour"
    shutil.copytree(tiny_folder, flavour / "model", ignore=shutil.ignore_patterns("token*"))
    shutil.copytree(tiny_folder, flavour / "components" / "tokenizer")
    half = place / "half"
    shutil.copytree(tiny_folder, half, ignore=shutil.ignore_patterns("*.safetensors"))
    (half / "pytorch_model.bin").write_bytes(b"never read")
    client = MlflowClient(store, store)
    client.create_registered_model("tiny")
    for folder in (tiny_folder, flavour, half):
        client.create_model_version("tiny", source=folder.as_uri())
    client.set_registered_model_alias("tiny", "chosen", "1")
    return store


@pytest.fixture
def named(store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    return store


def files(source: str, tmp_path: Path) -> ModelFiles:
    return resolve(source, cache_dir=tmp_path / "cache", notice=lambda line: None)


def test_a_version_is_the_model_that_was_registered(
    named: str, tiny_folder: Path, tmp_path: Path
) -> None:
    local = files(f"path:{tiny_folder}", tmp_path)
    for source in (CHOSEN, "mlflow:models:/tiny/1", "mlflow:models:/tiny/2"):
        found = files(source, tmp_path)
        assert found.weights_digest == local.weights_digest
        assert found.tokenizer_digest == local.tokenizer_digest
        assert found.folder.is_relative_to(tmp_path / "cache")


def test_an_alias_is_pinned_before_it_can_move(named: str) -> None:
    assert pinned(CHOSEN) == "mlflow:models:/tiny/1"
    assert pinned("mlflow:models:/tiny/2") == "mlflow:models:/tiny/2"
    assert pinned("path:anywhere") == "path:anywhere"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("mlflow:models:/tiny@nobody", "models:/tiny@nobody"),
        ("mlflow:models:/tiny/9", "models:/tiny/9"),
        ("mlflow:models:/tiny/3", "holds no weights"),
    ],
)
def test_what_is_not_a_model_is_one_line(
    named: str, tmp_path: Path, source: str, said: str
) -> None:
    with pytest.raises(UserError) as refused:
        files(source, tmp_path)
    assert str(refused.value).startswith("model.source: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("store", ["", "mlruns", "sqlite:///mlflow.db"])
def test_a_store_must_be_named_absolutely(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        files(CHOSEN, tmp_path)
    assert list(tmp_path.iterdir()) == []
