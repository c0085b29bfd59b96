"""`draft.head.source`: three forms of URI, each to the folder of a draft head on this machine."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from outrider.core import UserError
from outrider.models import digest
from outrider.models.cache import Notice, entry_name, make_once
from outrider.models.files import ModelFiles, pinned
from outrider.models.mlflow_source import fetch_version, store_from, version_number
from outrider.models.source import MlflowSource, parse_source

AUTO_HEAD = "auto"  # becomes one of the forms, or none, before anything is resolved
FORMS = ("path:/folder", "mlflow:models:/name@alias", "shipped:name")
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadFiles:
    """A draft head that is on this machine. What is in the folder is checked where it is read."""

    source: str
    folder: Path
    weights_digest: str  # of its config.json and safetensors


def resolve_head(
    source: str, *, shipped: Path, cache_dir: Path, notice: Notice, store: str = ""
) -> HeadFiles:
    """`shipped`: the folder that `shipped:` looks in. `store`: address of the MLflow store that
    `mlflow:` looks in; "": the one that MLFLOW_TRACKING_URI names. Raises UserError or Fault, one
    line each.
    """
    folder = _folder(source, shipped, cache_dir, notice, store)
    if not (folder / "config.json").is_file():
        raise UserError(f"draft.head.source: {folder}: no draft head there (config.json)")
    try:
        found = digest.weights_digest(folder, cache_dir=cache_dir)
    except (OSError, ValueError) as error:
        raise UserError(f"draft.head.source: {folder} is not readable ({error})") from error
    return HeadFiles(source=source, folder=folder, weights_digest=found)


def pinned_head(source: str, store: str = "") -> str:
    """`source` with the version that its alias means now."""
    return pinned(source, store) if source.startswith("mlflow:") else source


def shipped_head(target: ModelFiles, shipped: Path) -> str:
    """The source of the head in `shipped` that was made for this target; "" where there is none."""
    for config in sorted(shipped.glob("*/config.json")):
        try:
            made_for = json.loads(config.read_text())["target_weights"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another's head: whoever names it is told what is wrong with it
        if made_for == target.weights_digest:
            return f"shipped:{config.parent.name}"
    return ""


def _folder(source: str, shipped: Path, cache_dir: Path, notice: Notice, store: str) -> Path:
    kind, _, rest = source.partition(":")
    match kind:
        case "path" if rest:
            return Path(rest).expanduser().absolute()
        case "shipped" if _NAME.fullmatch(rest):
            return _shipped(rest, shipped)
        case "mlflow" if rest:
            return _fetched(source, cache_dir, notice, store)
    raise UserError(f"draft.head.source={source!r}: write one of {', '.join(FORMS)}")


def _shipped(name: str, shipped: Path) -> Path:
    if not (shipped / name).is_dir():
        there = ", ".join(sorted(path.name for path in shipped.glob("*/"))) or "none"
        raise UserError(f"draft.head.source: no head {name} is shipped; there are: {there}")
    return shipped / name


def _fetched(source: str, cache_dir: Path, notice: Notice, store: str) -> Path:
    try:
        registered = parse_source(source)
        assert isinstance(registered, MlflowSource)
        store = store_from(os.environ, store)
        number = version_number(registered, store)
    except UserError as error:  # it is told of models elsewhere
        raise UserError(str(error).replace("model.source", "draft.head.source", 1)) from error
    name = entry_name(f"{registered.name}-{number}", store, registered.name, str(number))

    def make(folder: Path) -> None:
        notice(f"downloading {registered.name}, version {number}")
        fetch_version(registered.name, number, store, folder)

    return make_once(cache_dir / "heads" / name, make, notice)
