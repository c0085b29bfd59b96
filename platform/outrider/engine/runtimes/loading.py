"""A decoder-only Hugging Face model out of a local folder: safetensors only, no code of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from outrider.config.schema import Dtype
from outrider.core import UserError

TORCH_DTYPES = {
    Dtype.FLOAT64: torch.float64,
    Dtype.FLOAT32: torch.float32,
    Dtype.BFLOAT16: torch.bfloat16,
}

_LOAD_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


def load_config(folder: Path) -> Any:
    """Return the folder's Hugging Face config. UserError where there is none or it needs code."""
    if not (folder / "config.json").is_file():
        raise UserError(f"model folder {folder}: no config.json in it")
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"model folder {folder}: {_first_line(error)}") from error


def load_module(folder: Path, dtype: torch.dtype, device: str = "cpu") -> nn.Module:
    """Return the model in evaluation mode. UserError where weights are missing or unreadable."""
    if not any(folder.glob("*.safetensors")):
        raise UserError(
            f"model folder {folder}: no *.safetensors in it; other formats are not read"
        )
    try:
        with _quiet():
            module, info = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                # the grouped matrix product of expert layers has no float64
                experts_implementation="eager" if dtype is torch.float64 else None,
            )
    except _LOAD_ERRORS as error:
        raise UserError(f"model folder {folder}: {_first_line(error)}") from error
    if info["missing_keys"]:
        # transformers would fill them with random numbers and go on
        first = sorted(info["missing_keys"])[0]
        raise UserError(
            f"model folder {folder}: {len(info['missing_keys'])} weights missing ({first})"
        )
    evaluated: nn.Module = module.eval().to(device)
    return evaluated


def context_length(config: Any, limit: int) -> int:
    """Tokens a row may hold: what the model declares, or `limit` where that is smaller and > 0."""
    declared = getattr(config, "max_position_embeddings", None)
    if declared is None:
        if limit < 1:
            raise UserError(
                f"model type {config.model_type} declares no context length: set max_context_length"
            )
        return limit
    return min(int(declared), limit) if limit > 0 else int(declared)


def own_config(module: Any) -> Any:
    """Give `module` a config object of its own, and return it.

    Two models made from one config share it, and with it the name of their attention function.
    """
    shared = module.config
    private = type(shared).from_dict(shared.to_dict())
    private._attn_implementation = shared._attn_implementation
    for part in module.modules():
        if getattr(part, "config", None) is shared:
            part.config = private
    return private


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars and load reports: what they tell is checked or raised."""
    shown = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shown:
            transformers_logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
