"""Compose `conf/` with Hydra into typed, frozen, validated settings. Hydra is met only here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from outrider.config.folders import SHIPPED, Folders
from outrider.config.limits import validate
from outrider.config.typed import typed
from outrider.config.words import overrides_for
from outrider.core import UserError

T = TypeVar("T")

OmegaConf.register_new_resolver(
    "shipped", lambda name: str(SHIPPED / str(name)), replace=True
)  # `${shipped:data/sample.jsonl}` is a file of `conf/`, whatever the working directory


def load(
    job: type[T], name: str, overrides: Sequence[str] = (), config_dir: Path | None = None
) -> T:
    """Return the settings of `conf/<name>.yaml` under `overrides` (`key=value`, `group=choice`).

    `config_dir`: a folder of the user's with more files, laid out as `conf/`.
    Raises UserError, one line, for anything in it that cannot be meant.
    """
    settings = typed(job, composed(job, name, overrides, config_dir))
    validate(settings)
    return settings


def composed(
    job: type, name: str, overrides: Sequence[str] = (), config_dir: Path | None = None
) -> object:
    """Return the composition as plain dicts and lists; values not given stay `???`."""
    folders = Folders(config_dir)
    words = overrides_for(job, overrides, folders.groups(name), folders)
    try:
        config = _compose(name, words, folders)
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=False)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise UserError(_one_line(error)) from error


def _compose(name: str, overrides: list[str], folders: Folders) -> DictConfig:
    first, *others = folders.all
    path = ",".join(f"'file://{folder}'" for folder in others)
    search = [f"hydra.searchpath=[{path}]"] if others else []
    with initialize_config_dir(config_dir=str(first), version_base="1.3"):
        return compose(config_name=name, overrides=[*search, *overrides])


def _one_line(error: BaseException) -> str:
    """What Hydra says, with the key in front and without line breaks and object addresses."""
    text = str(error)
    refused = re.search(r"Could not override '([^']+)'", text)
    if refused:
        key = refused.group(1)
        section, group = key.rpartition(".")[0], key.partition(".")[0]
        return f"{key}: {section} is off here; choose another {group}=... that has it (--help)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    key = next((line.split()[1] for line in lines if re.match(r"full_key: \S", line)), "")
    kept = [line for line in lines if not line.startswith(("full_key:", "object_type=", "See "))]
    return ": ".join(part for part in (key, " ".join(kept)) if part) or type(error).__name__
