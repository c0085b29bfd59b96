"""The folders that hold configuration files, and what can be chosen from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from outrider.core import UserError

SHIPPED = Path(__file__).resolve().parents[3] / "conf"


@dataclass(frozen=True)
class Folders:
    """Where configuration files are: the user's folders first, then the shipped one."""

    extra: tuple[Path, ...] = ()

    @cached_property
    def all(self) -> tuple[Path, ...]:
        for folder in self.extra:
            if not folder.is_dir():
                raise UserError(f"--config-dir: no folder {folder}")
        return (*self.extra, SHIPPED)

    def groups(self, name: str) -> dict[str, str | None]:
        """Group -> its default choice, in the order of the defaults list of `<name>.yaml`."""
        document = read(self.find(f"{name}.yaml"))
        entries = [entry for entry in document.get("defaults", ()) if isinstance(entry, dict)]
        return {str(group): choice for entry in entries for group, choice in entry.items()}

    def choices(self, group: str) -> list[str]:
        """What a group may be; files that begin with `_` are shared parts, not choices."""
        paths = (path for folder in self.all for path in (folder / group).glob("*.yaml"))
        return sorted({path.stem for path in paths if not path.stem.startswith("_")})

    def find(self, relative: str) -> Path:
        """The file of that name that wins."""
        for folder in self.all:
            if (folder / relative).is_file():
                return folder / relative
        raise UserError(f"{relative}: no such file in {', '.join(map(str, self.all))}")

    def files(self) -> Iterator[Path]:
        """Every configuration file, the user's first."""
        for folder in self.all:
            yield from sorted(folder.rglob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raises UserError naming the file."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UserError(f"{path}: expected keys, got {type(document).__name__}")
    return document
