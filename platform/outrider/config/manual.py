"""`--help`: every group, preset and key, with defaults and comments, out of `conf/` itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from outrider.config.comments import document
from outrider.config.folders import Folders
from outrider.config.load import composed
from outrider.config.typed import UNSET, keys

WIDTH = 100
FLAGS = """\
Flags
  --help             this page
  --cfg              print the resolved configuration as YAML and stop
  --config-dir DIR   more configuration files, laid out as conf/
  --traceback        show the whole traceback of an error
"""
KEYS = "Keys (key=value; the front may be left out where one key ends so: limit=10, trace=true)"


def manual(job: type, name: str, description: str, config_dir: Path | None = None) -> str:
    """Return the help text of one job."""
    folders = Folders(config_dir)
    parts = [
        description.strip(),
        f"Usage: python jobs/{name}.py [key=value ...] [group=choice ...] [flags]",
        FLAGS.rstrip(),
        "Groups (group=choice; the default is in brackets)",
        "\n\n".join("\n".join(_group(folders, *item)) for item in folders.groups(name).items()),
        KEYS,
        "\n".join(_keys(job, _values(composed(job, name, (), config_dir)), comments(folders))),
    ]
    return "\n\n".join(parts) + "\n"


def comments(folders: Folders) -> dict[str, str]:
    """Full key -> comment, from the first file that says something of it."""
    found: dict[str, str] = {}
    for folder in folders.all:
        for path in sorted(folder.rglob("*.yaml"), key=lambda path: path.name):
            for entry in document(path, folder).entries:
                if entry.comment:
                    found.setdefault(entry.key, entry.comment)
    return found


def _group(folders: Folders, group: str, default: str | None) -> Iterator[str]:
    for choice in folders.choices(group):
        path = folders.find(f"{group}/{choice}.yaml")
        title = document(path, path.parents[1]).title
        name = f"{group}=[{choice}]" if choice == default else f"{group}={choice}"
        yield from _hanging(f"  {name:<20} ", title)


def _keys(job: type, values: Mapping[str, object], said: Mapping[str, str]) -> Iterator[str]:
    section = ""
    for key in (key for key, _ in keys(job) if key in values):
        if key.partition(".")[0] != section:
            section = key.partition(".")[0]
            yield ""
        shown = "(to be given)" if values[key] == UNSET else _shown(values[key])
        yield from _hanging(f"  {key + '=' + shown:<36} ", said.get(key, ""))


def _values(config: object, path: str = "") -> dict[str, object]:
    """Full key -> value, leaves only."""
    if not isinstance(config, dict):
        return {path: config}
    found: dict[str, object] = {}
    for name, value in config.items():
        found |= _values(value, f"{path}.{name}" if path else str(name))
    return found


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value).replace(" ", "") if isinstance(value, list) else str(value)


def _hanging(start: str, text: str) -> list[str]:
    """`text` behind `start`, wrapped, later lines under the first."""
    column = len(start) if len(start) < WIDTH // 2 else 8
    lines = textwrap.wrap(text, WIDTH - column) or [""]
    if column != len(start):
        return [start.rstrip(), *(" " * column + line for line in lines)]
    return [(start + lines[0]).rstrip(), *(" " * column + line for line in lines[1:])]
