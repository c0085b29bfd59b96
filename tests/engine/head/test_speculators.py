"""Heads go to the layout of the `speculators` package and come back the same."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from outrider.core import UserError
from outrider.engine.head.speculators import from_speculators, to_speculators
from outrider.models import ModelFiles
from outrider.testing import toy_head

TARGET = ModelFiles(
    source="path:target",
    folder=Path("target"),
    weights_digest="weights",
    tokenizer_digest="tokens",
    chat_template_digest=None,
)
LAYERS = (0, 2, 5)


def make(layers=LAYERS):
    return toy_head(vocab_size=12, hidden_size=8, feature_layers=layers)


@pytest.fixture
def folder(tmp_path):
    to_speculators(make(), tmp_path, verifier="org/target")
    return tmp_path


def change(folder, section=None, **changes):
    path = folder / "config.json"
    told = json.loads(path.read_text())
    (told[section] if section else told).update(changes)
    path.write_text(json.dumps(told))


def refusal(folder, **more):
    with pytest.raises(UserError) as refused:
        from_speculators(folder, TARGET, **more)
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(f"speculators: {folder}: ")


def test_a_head_comes_back_as_it_went(folder):
    one, other = make(), from_speculators(folder, TARGET)
    assert other.config.target_weights == "weights"
    assert other.config.feature_layers == LAYERS
    theirs = other.state_dict()
    assert one.state_dict().keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in one.state_dict().items())


def test_the_order_of_the_vocabulary_is_theirs(tmp_path):
    """Theirs is in order of id; a head that was in another says the same."""
    head = make()
    shuffled = make()
    order = torch.randperm(8)
    shuffled.d2t.copy_(head.d2t[order])
    shuffled.lm_head.weight.copy_(head.lm_head.weight[order])
    to_speculators(shuffled, tmp_path, verifier="org/target")
    other = from_speculators(tmp_path, TARGET)
    assert torch.equal(other.d2t, head.d2t)
    assert torch.equal(other.lm_head.weight, head.lm_head.weight)


def test_the_files_are_as_the_package_documents(folder):
    told = json.loads((folder / "config.json").read_text())
    assert told["speculators_model_type"] == "eagle3"
    assert told["draft_vocab_size"] == 8
    assert told["eagle_aux_hidden_state_layer_ids"] == [1, 3, 6]  # what goes into those layers
    assert told["speculators_config"]["verifier"]["name_or_path"] == "org/target"
    tensors = load_file(folder / "model.safetensors")
    ids = make().d2t
    assert torch.equal(tensors["d2t"] + torch.arange(8), ids)
    assert tensors["t2d"].nonzero().flatten().tolist() == ids.tolist()
    assert tensors["layers.0.self_attn.q_proj.weight"].shape == (16, 16)
    assert set(tensors) == {*make().state_dict(), "t2d"}


@pytest.mark.parametrize(
    ("section", "changes", "said"),
    [
        (None, {"speculators_model_type": "mlp"}, "speculators_model_type mlp is not read"),
        (None, {"norm_before_residual": True}, "norm_before_residual True is not read"),
        (None, {"norm_before_fc": True}, "norm_before_fc True is not read"),
        (None, {"target_hidden_size": 16}, "target_hidden_size 16 is not read"),
        (None, {"eagle_aux_hidden_state_layer_ids": None}, "eagle_aux_hidden_state_layer_ids is"),
        (None, {"eagle_aux_hidden_state_layer_ids": [0, 3, 6]}, "eagle_aux_hidden_state_layer_ids"),
        ("transformer_layer_config", {"num_hidden_layers": 2}, "num_hidden_layers 2 is not read"),
        ("transformer_layer_config", {"model_type": "qwen3"}, "model_type qwen3 is not read"),
        ("transformer_layer_config", {"attention_bias": True}, "attention_bias True is not read"),
        ("transformer_layer_config", {"rope_scaling": {"factor": 2}}, "rope_scaling"),
        (
            "transformer_layer_config",
            {"rope_parameters": {"rope_type": "llama3"}},
            "rope_type llama3 is not read",
        ),
    ],
)
def test_what_has_no_place_here_is_refused_by_name(folder, section, changes, said):
    change(folder, section, **changes)
    assert refusal(folder).startswith(said)


def test_their_embeddings_must_be_the_target_s(folder):
    path, own = folder / "model.safetensors", torch.randn(12, 8)
    save_file({**load_file(path), "embed_tokens.weight": own}, path)
    from_speculators(folder, TARGET, embedding=own)
    assert refusal(folder).startswith("embed_tokens.weight is in it")
    assert refusal(folder, embedding=own + 1).startswith("embed_tokens.weight is not the target's")


def test_a_head_with_the_whole_vocabulary_is_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    del tensors["d2t"]
    save_file(tensors, folder / "model.safetensors")
    assert refusal(folder).startswith("it has no d2t")


def test_the_position_base_is_found_where_either_version_writes_it(folder):
    change(folder, "transformer_layer_config", rope_parameters={"rope_theta": 5e5})
    assert from_speculators(folder, TARGET).config.rope_theta == 5e5


def test_a_head_that_reads_other_than_three_layers_cannot_go(tmp_path):
    with pytest.raises(UserError, match="only heads that read 3 layers"):
        to_speculators(make((0, 1)), tmp_path, verifier="org/target")
