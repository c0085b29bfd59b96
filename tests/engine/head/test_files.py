"""A head's folder comes back as it was written, and what is wrong with one is told at load."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from outrider.core import UserError
from outrider.engine.head import load_embedding, load_head, save_head
from outrider.models import ModelFiles
from outrider.testing import toy_head

TARGET = ModelFiles(
    source="path:target",
    folder=Path("target"),
    weights_digest="weights",
    tokenizer_digest="tokens",
    chat_template_digest=None,
)


def make(seed=0):
    return toy_head(
        vocab_size=12,
        hidden_size=8,
        seed=seed,
        target_weights="weights",
        target_tokenizer="tokens",
    )


@pytest.fixture
def folder(tmp_path):
    save_head(make(), tmp_path / "head")
    return tmp_path / "head"


def change_config(folder, **changes):
    path = folder / "config.json"
    told = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in told.items() if value is not None}))


def change_tensors(folder, **changes):
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in changes.items():
        if tensor is None:
            del tensors[name.replace("__", ".")]
        else:
            tensors[name.replace("__", ".")] = tensor
    save_file(tensors, folder / "model.safetensors")


def refusal(folder, target=TARGET):
    with pytest.raises(UserError) as refused:
        load_head(folder, target)
    said = str(refused.value)
    assert said.startswith(f"draft.head.source: {folder}: ")
    assert "\n" not in said
    return said.removeprefix(f"draft.head.source: {folder}: ")


def test_what_was_written_is_read_again(folder):
    one, other = make(), load_head(folder, TARGET, dtype=torch.float64)
    assert other.config == one.config
    theirs = other.state_dict()
    assert one.state_dict().keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in one.state_dict().items())


def test_it_is_computed_in_the_type_that_is_asked_for(folder):
    head = load_head(folder, TARGET)
    assert (head.dtype, head.d2t.dtype) == (torch.float32, torch.int64)
    assert not any(weight.requires_grad for weight in head.parameters())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights_digest": "others"}, "a head of another model: its target's weights differ"),
        ({"tokenizer_digest": "others"}, "a head of another model: its target's tokens differ"),
    ],
)
def test_a_head_of_another_model_is_refused(folder, changed, said):
    from dataclasses import replace

    assert refusal(folder, replace(TARGET, **changed)).startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "llama"}, "config.json: it is no draft head"),
        ({"version": 2}, "config.json: a head of version 2 is not read here, only 1"),
        ({"colour": "red"}, "config.json: no such key: colour"),
        ({"hidden_size": None}, "config.json: incomplete"),
        ({"hidden_size": "8"}, "config.json: hidden_size must be a whole number above 0, got '8'"),
        ({"num_heads": 3}, "config.json: num_heads must be a multiple of num_kv_heads (2), got 3"),
        ({"head_dim": 3}, "config.json: head_dim must be even, got 3"),
        ({"feature_layers": []}, "config.json: feature_layers must be numbers of decoder layers"),
        ({"feature_layers": [1, 0]}, "config.json: feature_layers must be growing"),
        ({"feature_layers": 2}, "config.json: incomplete"),
        ({"rope_theta": -1.0}, "config.json: rope_theta must be a number above 0"),
        ({"draft_vocab_size": 13}, "config.json: draft_vocab_size must be at most vocab_size (12)"),
        ({"hidden_size": 16}, "fc.weight is [8, 16], expected [16, 32]"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(folder, changes, said):
    change_config(folder, **changes)
    assert refusal(folder).startswith(said)


NAN = torch.full((8, 16), torch.nan)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fc__weight": None}, "model.safetensors lacks fc.weight"),
        ({"more": torch.zeros(1)}, "model.safetensors has more, which no head has"),
        ({"fc__weight": torch.zeros(8, 15)}, "fc.weight is [8, 15], expected [8, 16]"),
        ({"fc__weight": NAN}, "fc.weight holds NaN or infinity"),
        ({"fc__weight": torch.zeros(8, 16, dtype=torch.int8)}, "fc.weight holds torch.int8"),
        ({"d2t": torch.arange(7)}, "d2t is [7], expected [8]"),
        ({"d2t": torch.arange(8.0)}, "d2t holds torch.float32, expected int64"),
        ({"d2t": torch.arange(5, 13)}, "d2t has ids outside the target's 12 tokens"),
        ({"d2t": torch.arange(-1, 7)}, "d2t has ids outside the target's 12 tokens"),
        ({"d2t": torch.tensor([0, 1, 2, 3, 4, 5, 6, 6])}, "d2t has a token twice"),
    ],
)
def test_tensors_that_cannot_be_meant_are_refused(folder, changes, said):
    change_tensors(folder, **changes)
    assert refusal(folder).startswith(said)


def test_a_file_that_was_cut_short_is_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    assert refusal(folder).startswith("model.safetensors is damaged or no safetensors file")


def test_other_file_formats_are_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert refusal(folder) == "no model.safetensors in it (pytorch_model.bin is not read)"


def test_a_folder_without_a_head_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere") == "no such folder"
    assert refusal(tmp_path) == "no readable config.json in it"
    (tmp_path / "config.json").write_text("{")
    assert refusal(tmp_path).startswith("config.json: not readable JSON")
    (tmp_path / "config.json").write_text("[]")
    assert refusal(tmp_path) == "config.json: not a JSON object"


def test_embeddings_are_the_target_s_own(tmp_path):
    weight = torch.randn(12, 8)
    save_file({"model.embed_tokens.weight": weight}, tmp_path / "model-00002.safetensors")
    save_file({"model.norm.weight": torch.ones(8)}, tmp_path / "model-00001.safetensors")
    assert torch.equal(load_embedding(tmp_path, vocab_size=12, hidden_size=8), weight)
    with pytest.raises(UserError, match=r"embeddings of \[12, 9\] are wanted, .* has \[12, 8\]"):
        load_embedding(tmp_path, vocab_size=12, hidden_size=9)
    with pytest.raises(UserError, match=r"embeddings of \[13, 8\] are wanted"):
        load_embedding(tmp_path, vocab_size=13, hidden_size=8)


def test_a_target_without_embeddings_is_told(tmp_path):
    save_file({"model.norm.weight": torch.ones(8)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="no embeddings found"):
        load_embedding(tmp_path, vocab_size=12, hidden_size=8)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be read"):
        load_embedding(tmp_path, vocab_size=12, hidden_size=8)
