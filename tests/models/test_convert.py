"""GGUF to a Hugging Face folder: the same weights, the same tokens, nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from outrider.core import UserError
from outrider.models.convert import convert_gguf
from outrider.models.tokenizer import HfTokenizer

SENTENCE = "In 2025 the ferry left at 22:40, for 318 euros.\ntotal:    17"


@pytest.fixture(scope="module")
def converted(tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    convert_gguf(tiny_gguf, folder)
    return folder


def test_weights_come_through_bit_for_bit(tiny: SimpleNamespace, converted: Path) -> None:
    from safetensors.torch import load_file

    weights = load_file(converted / "model.safetensors")
    original = tiny.llama(len(tiny.tokenizer())).state_dict()
    del original["lm_head.weight"]  # tied: stored once
    assert weights.keys() == original.keys()
    for name, values in original.items():
        assert weights[name].dtype == torch.bfloat16
        assert torch.equal(weights[name], values), name


def test_the_folder_loads_as_an_ordinary_model_with_tied_embeddings(converted: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(converted, use_safetensors=True)
    assert type(model).__name__ == "LlamaForCausalLM"
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    config = json.loads((converted / "config.json").read_text())
    assert "quantization_config" not in config
    assert config["dtype"] == "bfloat16"


def test_digits_are_split_as_the_model_was_taught(tiny: SimpleNamespace, converted: Path) -> None:
    tokenizer = HfTokenizer.load(converted)
    assert tokenizer.encode(SENTENCE) == tiny.tokenizer().encode(SENTENCE)
    split = json.loads((converted / "tokenizer.json").read_text())["pre_tokenizer"]
    assert [part["type"] for part in split["pretokenizers"]] == ["Digits", "ByteLevel"]
    assert split["pretokenizers"][0]["individual_digits"] is True


def test_without_the_split_the_tokens_would_differ(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """Spaces in front of a number are one token with the split, and part of the number without."""
    convert_gguf(tiny.write_gguf(tmp_path / "a.gguf", split="gpt-2"), tmp_path / "out")
    assert HfTokenizer.load(tmp_path / "out").encode(SENTENCE) != tiny.tokenizer().encode(SENTENCE)


def test_template_and_end_of_text_come_through(converted: Path) -> None:
    tokenizer = HfTokenizer.load(converted)
    assert tokenizer.eos_ids == {2}
    assert tokenizer.render_chat([{"role": "user", "content": "Hi"}]) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_only_files_that_cannot_run_are_written(converted: Path) -> None:
    assert {path.suffix for path in converted.iterdir()} == {".safetensors", ".json", ".jinja"}


def test_a_pattern_of_plain_gpt2_is_left_alone(tiny: SimpleNamespace, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    convert_gguf(tiny.write_gguf(tmp_path / "a.gguf", split="gpt-2"), folder)
    backend = json.loads((folder / "tokenizer.json").read_text())
    assert backend["pre_tokenizer"]["type"] == "ByteLevel"


def test_a_pattern_that_cannot_be_rebuilt_is_refused_by_name(
    tiny: SimpleNamespace, tmp_path: Path
) -> None:
    gguf = tiny.write_gguf(tmp_path / "a.gguf", split="some-new-pattern")
    with pytest.raises(UserError, match="some-new-pattern"):
        convert_gguf(gguf, tmp_path / "out")


@pytest.mark.parametrize("kept", [0, 3, 20, 4_000, -2_000])
def test_a_file_cut_short_is_one_clear_line(tiny_gguf: Path, tmp_path: Path, kept: int) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_gguf.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"cut\.gguf") as refusal:
        convert_gguf(cut, tmp_path / "out")
    assert "\n" not in str(refusal.value)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_text("PK not a gguf at all")
    with pytest.raises(UserError, match="not a GGUF file"):
        convert_gguf(tmp_path / "a.gguf", tmp_path / "out")
