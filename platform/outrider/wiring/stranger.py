"""A draft model that knows nothing of its target: right tokens, random weights."""

from __future__ import annotations

import shutil
from pathlib import Path

from outrider.models import ModelFiles

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
}


def write_stranger(target: ModelFiles, folder: Path) -> Path:
    """A small model of the target's kind and vocabulary in `folder`, made once."""
    if (folder / "config.json").exists():
        return folder
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    config = AutoConfig.from_pretrained(target.folder)
    for name, value in SHAPE.items():
        setattr(config, name, value)
    torch.manual_seed(0)
    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_config(config)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (target.folder / name).exists():
            shutil.copy(target.folder / name, folder / name)
    model.save_pretrained(folder, safe_serialization=True)
    return folder
