"""The folders that hold configuration files, and what can be chosen from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from outrider.core import UserError

SHIPPED = Path(__file__).resolve().parents[3] / "conf"


@dataclass(frozen=True)
class Folders:
    """The shipped folder and, behind it, one of the user's that adds files to it."""

    extra: Path | None = None

    def __post_init__(self) -> None:
        if self.extra is None:
            return
        if not self.extra.is_dir():
            raise UserError(f"--config-dir: no folder {self.extra}")
        for path in sorted(self.extra.rglob("*.yaml")):
            relative = path.relative_to(self.extra)
            if (SHIPPED / relative).exists():  # Hydra would take the shipped one and not say so
                raise UserError(f"{path}: {relative} is shipped already; give it another name")

    @property
    def all(self) -> tuple[Path, ...]:
        return (SHIPPED, self.extra.resolve()) if self.extra else (SHIPPED,)

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
        """The file of that name."""
        for folder in self.all:
            if (folder / relative).is_file():
                return folder / relative
        raise UserError(f"{relative}: no such file in {', '.join(map(str, self.all))}")


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raises UserError naming the file."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UserError(f"{path}: expected keys, got {type(document).__name__}")
    return document
