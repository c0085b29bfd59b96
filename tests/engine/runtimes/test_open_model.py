"""A folder becomes the right runtime, or a clear refusal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from outrider.config.schema import Dtype, ModelSettings, RuntimeKind
from outrider.core import UserError
from outrider.engine.language_model import LanguageModel, RowSlice
from outrider.engine.runtimes import open_model

Open = Callable[..., tuple[LanguageModel, list[str]]]


@pytest.fixture
def save(tiny: Any, tmp_path: Path) -> Callable[[str], Path]:
    def save_family(family: str) -> Path:
        folder = tmp_path / family
        tiny.module(tiny.config(family)).save_pretrained(folder)
        return folder

    return save_family


@pytest.fixture
def open_(tmp_path: Path) -> Open:
    def open_folder(folder: Path, **settings: Any) -> tuple[LanguageModel, list[str]]:
        notices: list[str] = []
        chosen = {"device": "cpu", "dtype": Dtype.FLOAT32, "num_threads": 1, "kv_blocks": 4}
        model = open_model(
            folder,
            ModelSettings(source="", **{**chosen, **settings}),
            digest="tiny",
            cache_dir=tmp_path / "cache",
            notice=notices.append,
        )
        return model, notices

    return open_folder


def test_auto_takes_openvino_on_cpu_and_converts_once(
    save: Callable[[str], Path], open_: Open, tmp_path: Path
) -> None:
    folder = save("llama-gqa")
    first, notices = open_(folder)
    assert first.identity["runtime"].startswith("openvino")
    assert first.identity["weights"] == "tiny"
    assert notices == []
    (folder / "model.safetensors").unlink()  # nobody reads it again
    second, _ = open_(folder, runtime=RuntimeKind.OPENVINO)
    row = RowSlice([5, 6, 7], 0, [2], 3)
    assert torch.equal(first.forward([row]), second.forward([row]))
    kept = [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"]
    assert [path.suffix for path in kept] == [""]  # no half-made folder is left


def test_bfloat16_is_near_float32(save: Callable[[str], Path], open_: Open) -> None:
    folder = save("llama-gqa")
    row = RowSlice(list(range(1, 21)), 0, [3], 20)
    for runtime in (RuntimeKind.TORCH, RuntimeKind.OPENVINO):
        exact, _ = open_(folder, runtime=runtime)
        rounded, _ = open_(folder, runtime=runtime, dtype=Dtype.BFLOAT16)
        expected = exact.forward([row])
        difference = (rounded.forward([row]).float() - expected).abs().max() / expected.abs().max()
        assert 1e-5 < difference < 0.1


def test_auto_takes_torch_for_float64(save: Callable[[str], Path], open_: Open) -> None:
    model, notices = open_(save("mixtral"), dtype=Dtype.FLOAT64, block_size=16, kv_blocks=8)
    assert model.identity["runtime"].startswith("torch")
    assert model.identity["dtype"] == "float64"
    assert model.shape.context_length == 128
    assert notices == []


def test_auto_says_once_that_it_falls_back_to_torch(
    save: Callable[[str], Path], open_: Open
) -> None:
    folder = save("mixtral")
    model, notices = open_(folder)
    assert model.identity["runtime"].startswith("torch")
    assert len(notices) == 1
    assert "model type mixtral can't be run exactly: OpenVINO" in notices[0]


def test_threads_default_to_the_cores_this_process_may_use(
    save: Callable[[str], Path], open_: Open
) -> None:
    before = torch.get_num_threads()
    try:
        model, _ = open_(save("gpt2"), runtime=RuntimeKind.TORCH, num_threads=0)
        assert model.identity["num_threads"] == str(len(os.sched_getaffinity(0)))
        assert torch.get_num_threads() == len(os.sched_getaffinity(0))
    finally:
        torch.set_num_threads(before)


def test_the_context_can_be_shortened_but_not_stretched(
    save: Callable[[str], Path], open_: Open
) -> None:
    folder = save("llama-gqa")
    for limit, expected in ((50, 50), (1000, 128), (0, 128)):
        model, _ = open_(folder, runtime=RuntimeKind.TORCH, max_context_length=limit)
        assert model.shape.context_length == expected


def test_what_cant_be_had_is_refused_with_its_key(
    save: Callable[[str], Path], open_: Open, tmp_path: Path
) -> None:
    folder = save("llama-gqa")
    cases: list[tuple[Path, dict[str, Any], str]] = [
        (folder, {"runtime": RuntimeKind.OPENVINO, "dtype": Dtype.FLOAT64}, "model.dtype float64"),
        (folder, {"runtime": RuntimeKind.OPENVINO, "block_size": 16}, "model.block_size 16"),
        (folder, {"runtime": "onnx"}, "model.runtime onnx: known are auto, torch, openvino"),
        (folder, {"device": "toaster"}, "model.device toaster: known are"),
        (folder, {"device": "cuda:99"}, "model.device cuda:99: this machine has"),
        (tmp_path, {}, "no config.json"),
    ]
    for where, settings, text in cases:
        with pytest.raises(UserError, match=text):
            open_(where, **settings)


def test_a_model_that_cant_be_exact_is_refused_in_both_runtimes(
    save: Callable[[str], Path], open_: Open
) -> None:
    folder = save("mistral")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "sliding_window": 16}))
    for runtime in RuntimeKind:
        with pytest.raises(UserError, match="model type mistral can't be run exactly"):
            open_(folder, runtime=runtime)


def test_missing_or_unreadable_weights_are_refused(
    save: Callable[[str], Path], open_: Open
) -> None:
    folder = save("llama-gqa")
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"1 weights missing \(model\.layers\.1\.mlp"):
        open_(folder, runtime=RuntimeKind.TORCH)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(UserError, match="model folder"):
        open_(folder, runtime=RuntimeKind.TORCH)
    file.rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"no \*\.safetensors"):
        open_(folder, runtime=RuntimeKind.TORCH)
