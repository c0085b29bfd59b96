"""The target's own embeddings, out of its safetensors: a head does not carry them."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from outrider.core import UserError

_NAMES = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")


def load_embedding(folder: Path, *, vocab_size: int, hidden_size: int) -> torch.Tensor:
    """[V, H] in the type of the file, V >= vocab_size. UserError where there is none such."""
    for path in sorted(folder.glob("*.safetensors")):
        found = _find(path)
        if found is not None:
            rows, width = found.shape
            if width != hidden_size or rows < vocab_size:
                raise UserError(
                    f"draft.head: embeddings of [{vocab_size}, {hidden_size}] are wanted, "
                    f"{path} has [{rows}, {width}]"
                )
            return found
    raise UserError(f"draft.head: no embeddings found in {folder} ({', '.join(_NAMES)})")


def _find(path: Path) -> torch.Tensor | None:
    try:
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.endswith(_NAMES)]  # noqa: SIM118
            found: torch.Tensor | None = file.get_tensor(names[0]) if names else None
    except (SafetensorError, OSError) as error:
        raise UserError(f"draft.head: {path} cannot be read ({error})") from error
    return found
