"""A head's folder, `config.json` and `model.safetensors`; what is wrong is told at load."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from outrider.core import UserError
from outrider.engine.head.config import HeadConfig, Target
from outrider.engine.head.module import DraftHead

CONFIG = "config.json"
WEIGHTS = "model.safetensors"


def save_head(head: DraftHead, folder: Path) -> None:
    """Write the folder, in the head's own type. It is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in head.state_dict().items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / CONFIG).write_text(head.config.to_json(), encoding="utf-8")


def load_head(
    folder: Path,
    target: Target,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DraftHead:
    """The head in `folder`, in evaluation mode. UserError, one line, where it can't be used."""
    try:
        config = read_config(folder)
        _check_target(config, target)
        head = build(config, read_tensors(folder))
    except UserError as error:
        raise UserError(f"draft.head.source: {folder}: {error}") from error
    return head.to(device=device, dtype=dtype).eval().requires_grad_(False)


def read_config(folder: Path) -> HeadConfig:
    if not folder.is_dir():
        raise UserError("no such folder")
    try:
        text = (folder / CONFIG).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"no readable {CONFIG} in it") from error
    try:
        return HeadConfig.of_json(text)
    except UserError as error:
        raise UserError(f"{CONFIG}: {error}") from error


def read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    path = folder / WEIGHTS
    if not path.is_file():
        others = sorted(each.name for each in folder.iterdir() if each.name != CONFIG)
        found = f" ({', '.join(others[:3])} is not read)" if others else ""
        raise UserError(f"no {WEIGHTS} in it{found}")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{WEIGHTS} is damaged or no safetensors file ({error})") from error


def build(config: HeadConfig, tensors: dict[str, torch.Tensor]) -> DraftHead:
    """The head of these tensors. UserError names the first that is wrong."""
    with torch.device("meta"):
        empty = DraftHead(config, torch.empty(config.draft_vocab_size, dtype=torch.int64))
    wanted = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    _check_names(wanted.keys(), tensors.keys())
    for name, shape in wanted.items():
        _check_tensor(name, tensors[name], shape)
    _check_map(tensors["d2t"], config.vocab_size)
    empty.load_state_dict(tensors, assign=True)
    return empty


def _check_target(config: HeadConfig, target: Target) -> None:
    remedy = "give the head that was trained for this model"
    if config.target_weights != target.weights_digest:
        raise UserError(f"a head of another model: its target's weights differ; {remedy}")
    if config.target_tokenizer != target.tokenizer_digest:
        raise UserError(f"a head of another model: its target's tokens differ; {remedy}")


def _check_names(wanted: Set[str], found: Set[str]) -> None:
    missing = sorted(wanted - found)
    if missing:
        raise UserError(f"{WEIGHTS} lacks {missing[0]}")
    surplus = sorted(found - wanted)
    if surplus:
        raise UserError(f"{WEIGHTS} has {surplus[0]}, which no head has")


def _check_tensor(name: str, tensor: torch.Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise UserError(f"{name} is {list(tensor.shape)}, expected {list(shape)}")
    if name == "d2t":
        if tensor.dtype not in (torch.int64, torch.int32):
            raise UserError(f"{name} holds {tensor.dtype}, expected int64")
    elif not tensor.is_floating_point():
        raise UserError(f"{name} holds {tensor.dtype}, expected floats")
    elif not bool(torch.isfinite(tensor).all()):
        raise UserError(f"{name} holds NaN or infinity")


def _check_map(d2t: torch.Tensor, vocab_size: int) -> None:
    """Each token of the head is one of the target's, and another one."""
    if bool((d2t < 0).any()) or bool((d2t >= vocab_size).any()):
        raise UserError(f"d2t has ids outside the target's {vocab_size} tokens")
    if len(set(d2t.tolist())) != d2t.numel():
        raise UserError("d2t has a token twice")
