"""Digests that say which weights, tokenizer and chat template a run used."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from outrider.core import Fault

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
)

_CHUNK = 1 << 22  # bytes read at a time
_UNSTABLE = ("transformers_version", "_name_or_path", "name_or_path", "chat_template")
"""Keys of a JSON file that say who wrote it or are digested apart."""


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def verify_sha256(path: Path, expected: str) -> None:
    """Raise Fault unless the file has the digest `expected`."""
    found = sha256_of(path)
    if found != expected:
        raise Fault(
            f"model.source: {path.name} has sha256 {found}, expected {expected}; "
            "the download is damaged or is another file than the one pinned"
        )


def cached_sha256(path: Path, *, cache_dir: Path) -> str:
    """Return the sha256 of a file, remembered in `cache_dir` by its size and time of change.

    The note lies in the cache, not beside the file: a user's model folder may be read-only.
    """
    stat = path.stat()
    state = [str(path), stat.st_size, stat.st_mtime_ns]
    note = cache_dir / "digests" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    remembered = _read_note(note)
    if remembered.get("state") == state:
        return str(remembered["sha256"])
    found = sha256_of(path)
    _write_note(note, {"state": state, "sha256": found})
    return found


def weights_digest(folder: Path, *, cache_dir: Path) -> str:
    """Return the digest of `config.json` and every safetensors file of a model folder.

    The configuration counts: the same tensors with another RoPE base are another model.
    """
    lines = [_json_line(folder / "config.json")]
    for path in sorted(folder.glob("*.safetensors")):
        lines.append(f"{path.name} {cached_sha256(path, cache_dir=cache_dir)}")
    return _of_lines(lines)


def tokenizer_digest(folder: Path) -> str:
    """Return the digest of the files that decide how text becomes tokens."""
    paths = [folder / name for name in TOKENIZER_FILES if (folder / name).exists()]
    return _of_lines(_json_line(path) if _is_small_json(path) else _line(path) for path in paths)


def chat_template_digest(folder: Path) -> str | None:
    """Return the digest of the chat template; None where the model has none."""
    template = read_chat_template(folder)
    return None if template is None else hashlib.sha256(template.encode()).hexdigest()


def read_chat_template(folder: Path) -> str | None:
    """Return the template's text, from its own file or from the tokenizer's configuration."""
    own_file = folder / "chat_template.jinja"
    if own_file.exists():
        return own_file.read_text(encoding="utf-8")
    config = folder / "tokenizer_config.json"
    template = _read_json(config).get("chat_template") if config.exists() else None
    if template is None or isinstance(template, str):
        return template
    return json.dumps(template, sort_keys=True)  # several named templates


def _is_small_json(path: Path) -> bool:
    return path.name == "tokenizer_config.json"


def _line(path: Path) -> str:
    return f"{path.name} {sha256_of(path)}"


def _json_line(path: Path) -> str:
    content = {key: value for key, value in _read_json(path).items() if key not in _UNSTABLE}
    return f"{path.name} {json.dumps(content, sort_keys=True)}"


def _read_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {"": content}


def _of_lines(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _read_note(note: Path) -> dict[str, Any]:
    try:
        return _read_json(note)
    except (OSError, ValueError):
        return {}


def _write_note(note: Path, content: dict[str, Any]) -> None:
    staging = note.with_suffix(f".{os.getpid()}.tmp")
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, not truth
        note.parent.mkdir(parents=True, exist_ok=True)
        staging.write_text(json.dumps(content), encoding="utf-8")
        staging.replace(note)
