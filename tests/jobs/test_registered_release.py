"""`release=models:/outrider@champion`: the same tokens, or one line that says why not."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import bulk
from mlflow import MlflowClient

from outrider.config.load import load
from outrider.config.schema import BenchJob, LengthPolicy, ServeJob
from outrider.core import UserError
from outrider.tracking.mlflow_client import MlflowConnection
from outrider.tracking.mlflow_registry import MlflowRegistry
from outrider.tracking.registry import Alias
from outrider.wiring.parts import as_registered

CHAMPION = "models:/outrider@champion"
TURNS = ["The ferry leaves at 22:40.", "Name: Ada, age: 36\nName: Ada,", "A boat", "Drifts"]


def row(index: int, turn: str) -> str:
    """A batch line that asks for the tokens too."""
    body = {"prompt": turn, "logprobs": 0}
    line = {"custom_id": f"row-{index}", "method": "POST", "url": "/v1/completions", "body": body}
    return json.dumps(line) + "\n"


def tokens(folder: Path) -> list[list[str]]:
    """What was generated, in the order of the input."""
    lines = (folder / "output.jsonl").read_text().splitlines()
    answers = (json.loads(line)["response"]["body"]["choices"][0] for line in lines)
    return [answer["logprobs"]["tokens"] for answer in answers]


def registry(place: Path) -> MlflowRegistry:
    return MlflowRegistry(
        MlflowConnection(
            uri=f"sqlite:///{place}/runs.db", experiment="outrider", spool_dir=place / "spool"
        )
    )


def places(folder: Path) -> list[str]:
    return [f"tracking.uri=sqlite:///{folder}/runs.db", f"beacons_dir={folder}/beacons"]


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, model_folder: Path, fresh_store: Path, joined: None
) -> Path:
    """A folder with an input, a model, and one bulk job done whose release is the champion."""
    folder = tmp_path_factory.mktemp("registered")
    shutil.copy(fresh_store, folder / "runs.db")
    (folder / "my.jsonl").write_text("".join(map(row, range(len(TURNS)), TURNS)))
    shutil.copytree(model_folder, folder / "model")
    words = ["input=my.jsonl", "job_dir=first", "model.source=path:model", "max_tokens=12"]
    words += ["model.runtime=torch", "model.dtype=float32", "draft=fixed"]
    bulk(folder, *words, *places(folder))
    registry(folder).give(Alias.CHAMPION, 1)
    return folder


def test_a_registered_release_gives_the_same_tokens_again(place: Path) -> None:
    bulk(place, "input=my.jsonl", "job_dir=again", f"release={CHAMPION}", *places(place))
    assert tokens(place / "again") == tokens(place / "first")
    assert [len(each) for each in tokens(place / "first")] == [12] * len(TURNS)
    first, again = (
        json.loads((place / name / "report.json").read_text()) for name in ("first", "again")
    )
    assert again["fingerprint"] == first["fingerprint"]
    assert [str(version) for version in registry(place).versions()] == ["1 (champion)"]
    version = registry(place).versions()[0]
    assert version.run_id == first["run_id"]
    tags = MlflowClient(f"sqlite:///{place}/runs.db").get_run(again["run_id"]).data.tags
    assert tags["release.version"] == "1"
    assert tags["lineage.source_data"] == again["input"]["digest"]
    assert tags["lineage.weights"] == version.tags["lineage.weights"]


def test_changed_weights_are_refused_by_name(
    place: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file, save_file

    kept = (place / "model" / "model.safetensors").read_bytes()
    tensors = load_file(place / "model" / "model.safetensors")
    tensors["model.norm.weight"] = tensors["model.norm.weight"] * 1.5
    save_file(tensors, place / "model" / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.chdir(place)
    words = ["input=my.jsonl", "job_dir=never", f"release={CHAMPION}"]
    try:
        said = refused("bulk", *words, f"tracking.uri=sqlite:///{place}/runs.db")
    finally:
        (place / "model" / "model.safetensors").write_bytes(kept)
    assert said.startswith("outrider: models:/outrider/1 can't be rebuilt here: model.weights is ")
    assert not (place / "never").exists()


def test_words_that_say_otherwise_are_refused_before_anything_is_opened(
    place: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    words = ["input=my.jsonl", "job_dir=never", "length.max=4", f"release={CHAMPION}"]
    assert refused("bulk", *words, f"tracking.uri=sqlite:///{place}/runs.db") == (
        f"outrider: draft.length.max: release={CHAMPION} says what decodes; "
        "leave it out, or leave out release\n"
    )
    assert not (place / "never").exists()


@pytest.mark.parametrize(("name", "job"), [("serve", ServeJob), ("bench", BenchJob)])
def test_serving_and_benches_decode_as_the_bulk_job_did(name: str, job: Any, place: Path) -> None:
    words = [f"release={CHAMPION}", "max_rows=3", f"tracking.uri=sqlite:///{place}/runs.db"]
    rebuilt, registered = as_registered(load(job, name, words), words)
    assert registered is not None
    assert rebuilt.model.source == f"path:{place / 'model'}"
    assert rebuilt.draft.length.policy is LengthPolicy.FIXED
    assert (rebuilt.sampling.max_tokens, rebuilt.engine.max_rows) == (12, 3)
    with pytest.raises(UserError, match=r"^models:/outrider/7: no release has that number"):
        as_registered(replace(rebuilt, release="models:/outrider/7"), words)
