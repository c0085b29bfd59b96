"""GGUF in, a clean Hugging Face folder out: bfloat16 safetensors, config, tokenizer, template."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outrider.core import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CONVERSION = "1"
"""Part of the cache key: raise it when the same GGUF must give another folder."""

DIGIT_SPLITS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"})
"""Values of `tokenizer.ggml.pre` that split every digit before GPT-2's pattern (llama.cpp)."""

PLAIN_SPLITS = frozenset({"gpt-2", "gpt2", "phi-2", "olmo", "mpt", "jais", "trillion"})
"""Values of `tokenizer.ggml.pre` that are GPT-2's pattern alone."""

_MAGIC = b"GGUF"


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Write the model in `gguf` into the empty `folder`. Needs the weights twice in memory.

    Raises UserError for a file that is not GGUF, is cut short, or has an architecture or a
    tokenizer that cannot be rebuilt exactly.
    """
    _check_magic(gguf)
    split = _split_name(gguf)
    with _quiet_transformers():
        model, tokenizer = _load(gguf)
        restore_split(tokenizer, split, gguf.name)
        _clean_copy(model).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _check_magic(gguf: Path) -> None:
    with gguf.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UserError(f"model.source: {gguf.name} is not a GGUF file")


def _split_name(gguf: Path) -> str | None:
    """Return `tokenizer.ggml.pre`, None for a tokenizer that has no such pattern."""
    from gguf import GGUFReader

    try:
        fields = GGUFReader(gguf).fields
        kind, split = (_text(fields, f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    except (ValueError, IndexError, KeyError, OSError, struct.error) as error:
        raise _unreadable(gguf, error) from error
    return split if kind == "gpt2" else None


def _text(fields: dict[str, Any], key: str) -> str:
    return str(fields[key].contents()) if key in fields else ""


def _load(gguf: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            # Else a machine with GGUF kernels would keep the blocks packed.
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
            trust_remote_code=False,
        )
        tokenizer = AutoTokenizer.from_pretrained(
            gguf.parent, gguf_file=gguf.name, trust_remote_code=False
        )
    except (ValueError, IndexError, KeyError, RuntimeError, OSError) as error:
        raise _unreadable(gguf, error) from error
    return model, tokenizer


def restore_split(tokenizer: PreTrainedTokenizerBase, split: str | None, name: str) -> None:
    """Put back the split of digits that transformers loses, in place.

    `split` is the file's `tokenizer.ggml.pre` (None: not a byte-level BPE). transformers rebuilds
    some patterns itself and falls back to GPT-2's for all others, silently: of those, the ones
    known to be right are taken and the rest refused, for other tokens are another model.
    """
    from tokenizers import pre_tokenizers

    backend = tokenizer.backend_tokenizer
    if split is None or not isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        return
    if split in DIGIT_SPLITS:
        digits = pre_tokenizers.Digits(individual_digits=True)
        backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    elif split not in PLAIN_SPLITS:
        raise UserError(
            f"model.source: {name} splits text by the pattern {split!r} (tokenizer.ggml.pre), "
            "which cannot be rebuilt; use the model's safetensors instead"
        )


def _clean_copy(model: PreTrainedModel) -> PreTrainedModel:
    """Return the same model without the mark of having been quantised, which forbids saving."""
    import torch

    config = model.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        config.pop(key, None)
    with torch.device("meta"):  # no second set of random weights
        clean = type(model)(type(model.config).from_dict(config))
    clean.load_state_dict(model.state_dict(), assign=True)
    clean.tie_weights()
    clean.config.dtype = torch.bfloat16
    clean.generation_config = model.generation_config
    return clean


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No bars and remarks: the caller has said what is going on, and errors are raised."""
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with redirect_stderr(StringIO()):  # one of the bars listens to no setting
            yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def _unreadable(gguf: Path, error: Exception) -> UserError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(f"model.source: {gguf.name} cannot be read as a GGUF model: {reason}")
