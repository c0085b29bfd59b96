"""Where a draft head comes from: a folder, a registered version, or what is shipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from outrider.core import UserError
from outrider.models import HeadFiles, pinned_head, resolve, resolve_head, shipped_head
from outrider.testing import toy_head


@pytest.fixture(scope="module")
def head_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from outrider.engine.head import save_head

    folder = tmp_path_factory.mktemp("heads") / "toy"
    save_head(toy_head(vocab_size=12, hidden_size=8), folder)
    return folder


def files(source: str, tmp_path: Path, shipped: Path = Path("nowhere")) -> HeadFiles:
    cache_dir = tmp_path / "cache"
    return resolve_head(source, shipped=shipped, cache_dir=cache_dir, notice=lambda line: None)


def refusal(source: str, tmp_path: Path, shipped: Path = Path("nowhere")) -> str:
    with pytest.raises(UserError) as refused:
        files(source, tmp_path, shipped)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_folder_and_what_is_shipped_are_found(head_folder: Path, tmp_path: Path) -> None:
    local = files(f"path:{head_folder}", tmp_path)
    shipped = files("shipped:toy", tmp_path, head_folder.parent)
    assert local.folder == shipped.folder == head_folder
    assert local.weights_digest == shipped.weights_digest


def test_another_head_has_another_digest(head_folder: Path, tmp_path: Path) -> None:
    from outrider.engine.head import save_head

    save_head(toy_head(vocab_size=12, hidden_size=8, seed=1), tmp_path / "other")
    one, other = (files(f"path:{each}", tmp_path) for each in (head_folder, tmp_path / "other"))
    assert one.weights_digest != other.weights_digest


def test_a_registered_version_is_fetched_once(
    head_folder: Path, fresh_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    store = f"sqlite:///{tmp_path}/mlflow.db"
    shutil.copy(fresh_store, tmp_path / "mlflow.db")
    client = MlflowClient(store, store)
    client.create_registered_model("outrider-draft")
    client.create_model_version("outrider-draft", source=head_folder.as_uri())
    client.set_registered_model_alias("outrider-draft", "best", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    found = files("mlflow:models:/outrider-draft@best", tmp_path)
    assert found.folder.is_relative_to(tmp_path / "cache")
    assert found.weights_digest == files(f"path:{head_folder}", tmp_path).weights_digest
    assert pinned_head("mlflow:models:/outrider-draft@best") == "mlflow:models:/outrider-draft/1"
    assert pinned_head("shipped:toy") == "shipped:toy"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("hub:a/b@c", "draft.head.source='hub:a/b@c': write one of path:/folder, "),
        ("path:", "draft.head.source='path:': write one of path:/folder, "),
        ("shipped:../x", "draft.head.source='shipped:../x': write one of path:/folder, "),
        ("shipped:x", "draft.head.source: no head x is shipped; there are: none"),
        ("mlflow:models:/x", "draft.head.source='mlflow:models:/x': a registered model is "),
    ],
)
def test_what_cannot_be_meant_is_refused(source: str, said: str, tmp_path: Path) -> None:
    assert refusal(source, tmp_path).startswith(said)


def test_a_folder_without_a_head_is_refused(tmp_path: Path) -> None:
    said = refusal(f"path:{tmp_path}", tmp_path)
    assert said == f"draft.head.source: {tmp_path}: no draft head there (config.json)"
    (tmp_path / "config.json").write_text("{")
    assert refusal(f"path:{tmp_path}", tmp_path).startswith(f"draft.head.source: {tmp_path} is not")


def test_what_is_shipped_is_named_where_a_name_is_wrong(head_folder: Path, tmp_path: Path) -> None:
    said = refusal("shipped:tyo", tmp_path, head_folder.parent)
    assert said == "draft.head.source: no head tyo is shipped; there are: toy"


def test_the_head_that_is_shipped_is_the_one_made_for_the_target(
    model_folder: Path, draft_folder: Path, tmp_path: Path
) -> None:
    from outrider.engine.head import save_head

    one, other = (
        resolve(f"path:{folder}", cache_dir=tmp_path / "cache", notice=lambda line: None)
        for folder in (model_folder, draft_folder)
    )
    shipped = tmp_path / "heads"
    assert shipped_head(one, shipped) == ""
    for name, digest in (("broken", ""), ("mine", one.weights_digest), ("a", "of another")):
        head = toy_head(vocab_size=12, hidden_size=8, target_weights=digest)
        save_head(head, shipped / name)
    (shipped / "broken" / "config.json").write_text("[")
    assert shipped_head(one, shipped) == "shipped:mine"
    assert shipped_head(other, shipped) == ""
